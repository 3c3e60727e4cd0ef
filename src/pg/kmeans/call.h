/*
 * call.h - what the k-means functions over whole tables have in common beside pg/table/call.h: their
 * options and the fit.
 */
#ifndef PGKM_PG_KMEANS_CALL_H
#define PGKM_PG_KMEANS_CALL_H

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"
#include "pg/table/call.h"

/* A call with these arguments and their options. 22023 for a bad one, or for one of those that the function, which is
 * named then, cannot use. */
TableCall *kmeans_call_create(const TableArguments &arguments, const char *function = NULL,
                              std::initializer_list<const char *> unusable = {});

/* A call of a function that takes relation, features, k, options and so on. */
TableCall *kmeans_call_of_arguments(FunctionCallInfo fcinfo);

/* Whether the fit can do without all rows in memory here, as where other servers work on theirs: the first rows are
 * those of the executor, batches are drawn here, and bounds of sizes and a radius concern all rows at
 * once. */
bool kmeans_call_is_spreadable(const TableCall *call);

/* Clusters the rows; NULL when there are none. The result lives as
 * long as the call. 54000 when the model would be larger than a value can be; else WARNING and errors as of
 * table_call_fit. */
const PgkmResult *kmeans_call_fit(TableCall *call, TableRows *rows, bool want_labels, bool want_distances);

/* Ends the call of a function that returns the model of that result; NULL where there is none. */
Datum kmeans_call_return(TableCall *call, FunctionCallInfo fcinfo, const PgkmResult *result, TupleDesc tupdesc);

#endif
