/*
 * fit_count.h - counts fits that ended early or found less than k, for one WARNING of each kind.
 */
#ifndef PGKM_PG_RUN_FIT_COUNT_H
#define PGKM_PG_RUN_FIT_COUNT_H

#include "pg/compat.h"

#include "engine/api.h"

/* Fits of a call or query, those that max_iter ended before they had converged, and those that found less than k. */
struct PgkmFitCount {
    int64 fits;
    int64 unfinished;
    int32 max_iter; /* of the last of these */
    int64 fewer;
    PgkmAlgorithm algorithm; /* of the first of these, as what follows */
    const char *group;       /* which one it is, as "region = north"; or NULL */
    int64 k;
    int32 found;
    int64 rows;
};

/* Counts a fit; true for the first that is unfinished. */
bool pgkm_count_fit(PgkmFitCount *count, const PgkmRequest *request, const PgkmResult *result);

/* Counts a fit of this algorithm if it has found less than k; true for the first. */
bool pgkm_count_fewer(PgkmFitCount *count, PgkmAlgorithm algorithm, const PgkmResult *result, int64 k);

/* One WARNING for all fits that have found less than k, with the first of them as example, and one (01K01) for all
 * unfinished ones. */
void pgkm_warn_counted(const PgkmFitCount *count);

#endif
