/*
 * gather.h - brings the rows of all processes together in shared memory.
 *
 * Every process tells how many rows its chunks have. From that follows where the rows of each chunk belong,
 * whoever has read it, and every process copies its own there.
 */
#ifndef PGKM_PG_SCAN_GATHER_H
#define PGKM_PG_SCAN_GATHER_H

#include "pg/scan/reader.h"

/* Slices of the memory that will hold all rows, which the processes create together. */
struct ScanSlices {
    int wanted;
    Size bytes;            /* of each */
    pg_atomic_uint32 next; /* the slice that nobody has begun to create */
    SharedSlice made[SHARED_VIEW_SLICES];
};

/* Where all rows belong. */
struct ScanTarget {
    int64 capacity;     /* rows that fit into `points` */
    dsm_handle points;  /* of a view that holds what PgkmRows does: values from the start on, then weights */
    dsm_handle origins; /* of a segment that holds what TableRows does; DSM_HANDLE_INVALID when that is nothing */
};

/* Slices for as many rows as are expected, to be created by about so many processes. */
void scan_slices_plan(const ScanPlan *plan, int n_processes, ScanSlices *slices);

/* Creates the next slice; false when there is none left. Every process does so once before it reads, and
 * after that until none is left, in place of those that never came. */
bool scan_slices_make(ScanSlices *slices);

/* Releases slices[first..] that this process created and no view uses. */
void scan_slices_drop(const ScanSlices *slices, int first);

/* Sets places[chunk] to the counts of the reader's chunks. */
void scan_publish(const ScanReader *reader, ScanPlace *places);

/* Turns the counts of all chunks into positions; places[n_chunks] is the end. */
void scan_place(ScanPlace *places, uint32 n_chunks);

/* Rows in `context`, with the slices counted for them. 54000 when that passes the limit. */
TableRows *scan_target_create(const ScanPlan *plan, MemoryContext context, const ScanSlices *slices);

/* Makes the slices one view for n rows that take part, when all slices are created. Adds a slice where
 * statistics were wrong. 54000 when that passes the limit; the server's error without enough shared memory. */
void scan_target_points(const ScanPlan *plan, int64 n, ScanSlices *slices, TableRows *rows, ScanTarget *target);

/* Creates what the rows need beside the points, when all have their places. Errors likewise. */
void scan_target_origins(const ScanPlan *plan, const ScanPlace *places, TableRows *rows, ScanTarget *target);

/* Copies the reader's chunks to their places, as one of so many processes. `points`: NULL when there
 * are none. `origins`: where the target's segment is mapped, or NULL. */
void scan_copy(const ScanReader *reader, const ScanPlace *places, const ScanTarget *target, SharedView *points,
               char *origins, int n_processes);

#endif
