/*
 * sweep.h - fits of k-means for each k of a range, for kmeans_sweep and its picture.
 */
#ifndef PGKM_PG_KMEANS_SWEEP_H
#define PGKM_PG_KMEANS_SWEEP_H

#include "pg/kmeans/call.h"
#include "pg/kmeans/options.h"

/* Arguments by position, behind relation and features; behind them the function's own. */
enum SweepArgument { SWEEP_K_MIN = TABLE_FEATURES + 1, SWEEP_K_MAX, SWEEP_OPTIONS, SWEEP_NEXT = SWEEP_OPTIONS + 5 };

/* The arguments k_min, which is returned, and k_max. 22023 for what is no range of k. */
int64 kmeans_sweep_range(FunctionCallInfo fcinfo, int64 *k_max);

/* The last k of a sweep of n rows: k_max, or n, but at least k_min. A NOTICE where it is not k_max. */
int64 kmeans_sweep_last(int64 k_min, int64 k_max, int64 n);

/* Reads the rows for `function` and fits them for each k. Result i (pgkm_result_of) is that of call->request.k + i;
 * there are *count, none where there are no rows. Errors of arguments, rows and fits. silhouette_rows is as
 * in PgkmRequest. */
TableCall *kmeans_sweep_fit(FunctionCallInfo fcinfo, const char *function, int64 silhouette_rows, int64 *count);

#endif
