/*
 * count.h - counts the rows of each chunk before any is read.
 *
 * That takes little time where pages are visible to all and lie in shared buffers: their line pointers tell
 * it. Then the place of each chunk's rows is known in advance. Whoever reads a chunk writes its rows there
 * at once, and need not keep them until all chunks are counted.
 */
#ifndef PGKM_PG_SCAN_COUNT_H
#define PGKM_PG_SCAN_COUNT_H

#include "pg/scan/reader.h"

/* What the processes that count share. */
struct ScanCounting {
    pg_atomic_uint32 next_chunk; /* that nobody has counted */
    pg_atomic_uint32 n_costly;   /* blocks whose tuples had to be looked at */
    pg_atomic_uint32 given_up;   /* 1: it would cost too much, or some rows take no part */
};

/* Counting begins with the chunk that the reader would read next. */
void scan_counting_init(ScanCounting *counting, const ScanReader *reader);

/* Counts chunks as one of the processes, until none is left or they have given up. Sets counts[chunk] to the
 * number of tuples that the snapshot sees, as if all took part. Closes the reader's table. */
void scan_count(ScanReader *reader, ScanCounting *counting, ScanPlace *counts);

#endif
