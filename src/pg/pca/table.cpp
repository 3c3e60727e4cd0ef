/*
 * table.cpp - pca_fit: the principal components of a table by name.
 */
#include "pg/table/call.h"

#include "pg/pca/pca.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_pca_table_fit);
}

/*
 * pca_fit(relation, features, options, ...) -> pca_model
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum pgkm_pca_table_fit(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_pca_model_tupdesc(fcinfo);
    TableCall *const call = table_call_create(table_arguments(fcinfo, TABLE_FEATURES + 1));
    TableQuery query = {};
    Datum model = (Datum)0;

    query.on_nodes = query.may_stream = true;
    call->request.algorithm = PGKM_PCA;
    pgkm_options_read(&pgkm_pca_options_type, &call->arguments.options, call->context, &call->request.pca);
    table_call_find(call, TABLE_READ);

    TableRows *const rows = table_call_read(call, "pca_fit", &query);

    if (table_call_used(call, rows) > 0) {
        table_call_request(call, rows);
        model = pgkm_pca_model_build(table_call_fit(call), &call->request.pca, call->fills, tupdesc);
    }
    return table_call_return(call, fcinfo, model);
}
