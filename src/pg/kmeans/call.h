/*
 * call.h - what the k-means functions over whole tables have in common beside pg/table/call.h: their
 * options and the fit.
 */
#ifndef PGKM_PG_KMEANS_CALL_H
#define PGKM_PG_KMEANS_CALL_H

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"
#include "pg/table/call.h"

/* Arguments by position, of kmeans_fit, kmeans_labels and kmeans_cluster, behind those of TableArgument. */
enum KmeansArgument {
    KMEANS_WEIGHT = TABLE_OPTIONS + PGKM_KMEANS_OPTIONS, /* the options are those of kmeans_options, in their order */
    KMEANS_LOADED,                                       /* kmeans_fit and kmeans_labels */
    KMEANS_NULLS,                                        /* behind it filter; kmeans_fit and kmeans_labels */
    KMEANS_LABEL = KMEANS_LOADED,                        /* kmeans_cluster; behind it overwrite */
    KMEANS_CLUSTER_NULLS = KMEANS_LABEL + 2
};

/* A call with the options that these fields of kmeans_options hold. 22023 for a bad one. */
TableCall *kmeans_call_create(const NullableDatum *options);

/* A call with the k and the options of KmeansArgument's functions. */
TableCall *kmeans_call_of_arguments(FunctionCallInfo fcinfo);

/* Whether the fit can do without all rows in memory here, as where other servers work on theirs: the first rows are
 * those of the executor, batches are drawn here, and bounds of sizes and a radius concern all rows at
 * once. */
bool kmeans_call_is_spreadable(const TableCall *call);

/* Clusters the rows and ends their reading (scan_dismiss); NULL when there are none. The result lives as
 * long as the call. 54000 when the model would be larger than a value can be; else WARNING and errors as of
 * table_call_fit. */
const PgkmResult *kmeans_call_fit(TableCall *call, TableRows *rows, bool want_labels, bool want_distances);

/* Ends the call of a function that returns the model of that result; NULL where there is none. */
Datum kmeans_call_return(TableCall *call, FunctionCallInfo fcinfo, const PgkmResult *result, TupleDesc tupdesc);

#endif
