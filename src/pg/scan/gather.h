/*
 * gather.h - bringing the rows of all processes together in shared memory.
 *
 * Every process tells how many rows its chunks have; from that follows where each chunk
 * belongs, whoever has read it; then every process copies its own there. Points may be there before, if
 * their numbers were known in advance (pg/scan/count.h).
 */
#ifndef PGKM_PG_SCAN_GATHER_H
#define PGKM_PG_SCAN_GATHER_H

#include "pg/scan/reader.h"

/* Slices of the memory that will hold all rows: of so many bytes, by the processes together. */
struct ScanSlices {
    int              wanted;
    Size             bytes;  /* of each */
    pg_atomic_uint32 next;   /* slice that nobody has begun to make */
    SharedSlice      made[SHARED_VIEW_SLICES];
};

/* Where all rows belong. */
struct ScanTarget {
    int64      capacity; /* rows that fit into `points` */
    dsm_handle points;   /* what PgkmRows holds, a view: values from the start on, weights */
    dsm_handle origins;  /* what TableRows holds; DSM_HANDLE_INVALID when that is nothing */
};

/* For as many rows as are expected, by so many processes. */
void scan_slices_plan(const ScanPlan *plan, int n_processes, ScanSlices *slices);

/* Makes the next slice, if there is one to be made. Every process does so before it reads, and again
 * when it has read, until there are none: for those that never came. */
bool scan_slices_make(ScanSlices *slices);

/* Gives up what this process has made of the slices from `first` on, unless a view held it that is
 * gone already. */
void scan_slices_drop(const ScanSlices *slices, int first);

/* Publishes the counts of the reader's chunks in places[chunk]. */
void scan_publish(const ScanReader *reader, ScanPlace *places);

/* Turns the counts of all chunks into positions; places[n_chunks] is the end. */
void scan_place(ScanPlace *places, uint32 n_chunks);

/* Rows in `context`, with the slices counted for them. 54000 when that passes the limit. */
TableRows *scan_target_create(const ScanPlan *plan, MemoryContext context, const ScanSlices *slices);

/* Now that so many used rows are counted and all slices made: brings as many together as it takes, and
 * adds one where statistics were wrong. 54000 and, without enough shared memory, the server's error. */
void scan_target_points(const ScanPlan *plan, int64 n, ScanSlices *slices, TableRows *rows, ScanTarget *target);

/* Now that all rows have their places: makes what they need beside the points. Errors likewise. */
void scan_target_origins(const ScanPlan *plan, const ScanPlace *places, TableRows *rows, ScanTarget *target);

/* Writes the used rows of the reader's chunks from note `first` on, all that it holds, to where
 * counts[chunk] says, and forgets them. */
void scan_write_points(const ScanReader *reader, int32 first, const ScanPlace *counted, SharedView *points);

/* Rows that were counted and then not used leave gaps: moves those behind down to their places. */
void scan_close_gaps(const ScanPlan *plan, const ScanPlace *counted, const ScanPlace *places, PgkmRows *used);

/* Copies the reader's chunks to their places in the view (NULL: the points are there already) and in
 * what is mapped at `origins`, as one of so many processes. */
void scan_copy(const ScanReader *reader, const ScanPlace *places, const ScanTarget *target, SharedView *points,
               char *origins, int n_processes);

#endif
