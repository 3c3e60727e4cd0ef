/*
 * count.h - how many rows each chunk has, before any is read.
 *
 * Where pages are known to be visible to all, and lie in shared buffers, their line pointers tell that
 * in little time. Then the place of each chunk's rows is known in advance, and whoever reads one can
 * write them there at once, instead of keeping all that it has read until all have counted theirs.
 */
#ifndef PGKM_PG_SCAN_COUNT_H
#define PGKM_PG_SCAN_COUNT_H

#include "pg/scan/reader.h"

/* The counting of all processes. */
struct ScanCounting {
    pg_atomic_uint32 next_chunk; /* that nobody has counted */
    pg_atomic_uint32 n_costly;   /* blocks whose tuples had to be looked at */
    pg_atomic_uint32 given_up;   /* 1: it costs too much, or rows will be skipped */
};

/* From the chunk on that the reader would read next. */
void scan_counting_init(ScanCounting *counting, const ScanReader *reader);

/* Counts chunks as one of the processes, until none is left or they have given up. counts[chunk] tells
 * how many tuples the snapshot sees, all of them taken for rows that take part. The reader has no
 * table open afterwards. */
void scan_count(ScanReader *reader, ScanCounting *counting, ScanPlace *counts);

#endif
