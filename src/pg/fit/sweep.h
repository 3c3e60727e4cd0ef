/*
 * sweep.h - fits for each k of a range or list: kmeans_sweep, its picture, and gmm_sweep.
 */
#ifndef PGKM_PG_FIT_SWEEP_H
#define PGKM_PG_FIT_SWEEP_H

#include "pg/fit/fit.h"
#include "pg/values/composite.h"

/* Arguments by position, behind relation and features; behind them the function's own, and ks, which is the last. */
enum SweepArgument { SWEEP_K_MIN = TABLE_FEATURES + 1, SWEEP_K_MAX, SWEEP_OPTIONS, SWEEP_NEXT = SWEEP_OPTIONS + 5 };

/* Reads the arguments of a sweep by `function` and its rows. *count are the k of the range or list, which ends at the
 * number of rows, with a NOTICE where that is less than k_max; none where there are no rows. k-means has fitted all of
 * them then, in one job: result i (pgkm_result_of) is that of pgkm_sweep_k(&call->request, i). Other algorithms need
 * one job for each k up to k_last, for which the rows are kept. silhouette_rows is as in PgkmRequest. 22023 for what is
 * neither; else errors of arguments, rows and fits. */
TableCall *sweep_begin(const FitKind *kind, FunctionCallInfo fcinfo, const char *function, int64 silhouette_rows,
                       int64 *count);

/* How many rows silhouettes are of, as argument `number` says; -1 where it is NULL, 22023 below 0. */
int64 sweep_sample_argument(FunctionCallInfo fcinfo, int number);

/* An index that is not defined is NULL. */
static inline PgkmValue index_value(double value)
{
    return pgkm_value_if(!std::isnan(value), value);
}

/* Looks for the best of a criterion among the results that have it: the greatest, of several the first. */
struct SweepBest {
    int64 place = -1; /* among the results; -1: none has it */
    double value = 0;

    void consider(int64 i, double candidate)
    {
        if (!std::isnan(candidate) && (place < 0 || candidate > value)) {
            place = i;
            value = candidate;
        }
    }
};

#endif
