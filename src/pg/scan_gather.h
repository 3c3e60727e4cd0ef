/*
 * scan_gather.h - bringing the rows of all processes together in shared memory.
 *
 * Every process tells how many rows its chunks have; from that follows where each chunk
 * belongs, whoever has read it; then every process copies its own there.
 */
#ifndef PGKM_PG_SCAN_GATHER_H
#define PGKM_PG_SCAN_GATHER_H

#include "pg/scan_reader.h"

extern "C" {
#include "storage/dsm.h"
}

/* The segments that hold all rows. */
struct ScanTarget {
    int64      capacity; /* rows that fit into `points` */
    dsm_handle points;   /* what PgkmRows holds: values from the start on, weights */
    dsm_handle origins;  /* what TableRows holds; DSM_HANDLE_INVALID when that is nothing */
};

/* Publishes the counts of the reader's chunks in places[chunk]. */
void scan_publish(const ScanReader *reader, ScanPlace *places);

/* Turns the counts of all chunks into positions; places[n_chunks] is the end. */
void scan_place(ScanPlace *places, uint32 n_chunks);

/* Rows in `context` with a segment for as many as are expected: the kernel takes its time to
 * provide it, which is best spent while the workers read. 54000 and, without enough shared
 * memory, the server's error; likewise below. */
TableRows *scan_target_create(const ScanPlan *plan, MemoryContext context, ScanTarget *target);

/* Now that all are counted: a segment that fits, if the first one does not, and the other one. */
void scan_target_fit(const ScanPlan *plan, const ScanPlace *places, TableRows *rows, ScanTarget *target);

/* Copies the reader's chunks to their places in segments mapped at the two addresses. */
void scan_copy(const ScanReader *reader, const ScanPlace *places, const ScanTarget *target, char *points,
               char *origins);

#endif
