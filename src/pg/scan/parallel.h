/*
 * parallel.h - what the processes of a parallel scan share, and what each of them knows.
 */
#ifndef PGKM_PG_SCAN_PARALLEL_H
#define PGKM_PG_SCAN_PARALLEL_H

#include "pg/scan/gather.h"

extern "C" {
#include "storage/barrier.h"
#include "storage/shm_toc.h"
}

enum TocKey : uint64 {
    SCAN_KEY_SHARED = 1,
    SCAN_KEY_PLAN,
    SCAN_KEY_PLACES,
    SCAN_KEY_QUERY,
    SCAN_KEY_PROGRAM,
    SCAN_KEY_COPIES
};

/* Of a reduction. */
struct ScanReducing {
    pg_atomic_uint32 n_begun; /* copies */
    pg_atomic_uint32 failed;  /* 1: a row has */
    pg_atomic_uint64 rows;    /* of all processes, as the next one */
    pg_atomic_uint64 skipped;
    int64 n_copies; /* one for each process; 0: the rows are wanted */
};

struct ScanShared {
    pg_atomic_uint32 next_chunk;
    pg_atomic_uint64 n_read;   /* rows, by all processes */
    pg_atomic_uint64 reserved; /* bytes of rows that the leader and all workers hold */
    Barrier barrier;           /* phases: ScanPhase */
    int n_processes;           /* about */
    ScanReducing reducing;     /* where there is one, rows are read in the first phase */
    ScanSlices slices;         /* all there from SCAN_PLACING on */
    ScanTarget target;         /* from SCAN_COPYING on */
};

/* What a process knows of the scan. */
struct ScanMember {
    ScanReader *reader;
    ScanShared *shared;
    shm_toc *toc;
    ScanPlace *places;
    SharedView *points; /* NULL: not mapped */
};

/* Reads chunks until none is left. */
void scan_read_all(ScanReader *reader, int n_processes);

/* Waits until all processes have come so far. */
void scan_meet(ScanShared *shared);

/* --- reductions (reduce.cpp) --- */

/* Before the start: what it needs in shared memory. */
void scan_reduction_estimate(shm_toc_estimator *estimator, const TableReduction *reduction);
void scan_reduction_put(shm_toc *toc, const TableReduction *reduction, ScanReducing *reducing);

/* Counts the memory of all copies as that of these rows. */
void scan_count_copies(const TableReduction *reduction, TableRows *rows);

/* Reads and reduces rows, until no process has any left. */
void scan_reduce(const ScanMember *member);

/* For the leader, when all have: takes the copies, which live as long as `rows`, and the numbers of these; or notes in
 * *reduction that a row has failed. */
void scan_take_copies(const ScanMember *member, TableReduction *reduction, TableRows *rows);

#endif
