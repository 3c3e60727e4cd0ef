/*
 * sweep.h - fits of k-means for each k of a range, for kmeans_sweep and its picture.
 */
#ifndef PGKM_PG_KMEANS_SWEEP_H
#define PGKM_PG_KMEANS_SWEEP_H

#include "pg/fit/sweep.h"

/* Reads the rows for `function` and fits them for each k. Result i (pgkm_result_of) is that of call->request.k + i;
 * there are *count, none where there are no rows. Errors of arguments, rows and fits. silhouette_rows is as
 * in PgkmRequest. */
TableCall *kmeans_sweep_fit(FunctionCallInfo fcinfo, const char *function, int64 silhouette_rows, int64 *count);

#endif
