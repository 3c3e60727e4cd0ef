/*
 * fit.cpp - kmeans_fit: a table by name, clustered.
 */
#include "pg/kmeans/call.h"

#include "pg/kmeans/model.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_kmeans_fit);
}

/*
 * kmeans_fit(relation, features, k, ...) -> kmeans_model
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum pgkm_kmeans_fit(PG_FUNCTION_ARGS)
{
    TupleDesc tupdesc = pgkm_model_tupdesc(fcinfo);
    TableCall *call = kmeans_call_of_arguments(fcinfo);
    TableQuery query = {};

    table_call_find(call, TABLE_READ);
    query.on_nodes = query.may_stream = kmeans_call_is_spreadable(call); /* the first rows are those of the executor */

    TableRows *const rows = table_call_read(call, "kmeans_fit", &query);
    const PgkmResult *result = kmeans_call_fit(call, rows, false, false);

    return kmeans_call_return(call, fcinfo, result, tupdesc);
}
