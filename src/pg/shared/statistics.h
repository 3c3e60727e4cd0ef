/*
 * statistics.h - pg_stat_kmeans: what all sessions have fitted since the last reset, counted in shared memory.
 */
#ifndef PGKM_PG_SHARED_STATISTICS_H
#define PGKM_PG_SHARED_STATISTICS_H

#include "pg/compat.h"

/* Counts fits of a function by a backend (NULL: none), both static strings. Does nothing where there is no shared
 * memory for it. */
void pgkm_statistics_add(const char *function, const char *backend, int64 fits, int64 rows, double seconds);

#endif
