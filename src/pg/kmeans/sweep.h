/*
 * sweep.h - fits of k-means for each k of a range, for kmeans_sweep and its picture.
 */
#ifndef PGKM_PG_KMEANS_SWEEP_H
#define PGKM_PG_KMEANS_SWEEP_H

#include "pg/kmeans/call.h"
#include "pg/kmeans/options.h"

/* Arguments by position, behind relation and features. */
enum SweepArgument {
    SWEEP_K_MIN = TABLE_FEATURES + 1,
    SWEEP_K_MAX,
    SWEEP_INIT,
    SWEEP_N_INIT, /* the other options follow in the order of kmeans_options */
    SWEEP_WEIGHT = SWEEP_N_INIT + PGKM_KMEANS_OPTIONS - 4,
    SWEEP_LOADED,
    SWEEP_NULLS /* behind it filter; kmeans_sweep alone */
};

/* Reads the rows for `function` and fits them for each k. Result i (pgkm_result_of) is that of call->request.k + i;
 * there are *count, none where there are no rows. Errors of arguments, rows and fits. `nulls` is as for
 * table_call_find. */
TableCall *kmeans_sweep_fit(FunctionCallInfo fcinfo, const char *function, int nulls, int64 *count);

#endif
