/*
 * table.cpp - pca_fit: the principal components of a table by name.
 */
#include "pg/table/call.h"

#include "pg/pca/pca.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_pca_fit);
}

/* Three of them, in the order of pca_options, behind relation and features. */
#define ARGUMENT_OPTIONS (TABLE_FEATURES + 1)
#define ARGUMENT_LOADED  (ARGUMENT_OPTIONS + 3)

/*
 * pca_fit(relation, features, n_components, whiten, standardize, loaded) -> pca_model
 *
 *   rows := SELECT features FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum pgkm_pca_fit(PG_FUNCTION_ARGS)
{
    const TupleDesc  tupdesc = pgkm_pca_model_tupdesc(fcinfo);
    TableCall *const call = table_call_create();
    PgkmPcaRequest   request;
    TableQuery       query;
    Datum            model = (Datum) 0;

    memset(&request, 0, sizeof request);
    memset(&query, 0, sizeof query);
    pgkm_pca_options_fields(fcinfo->args + ARGUMENT_OPTIONS, &request.options);
    table_call_find(call, fcinfo, TABLE_READ, NO_WEIGHT, ARGUMENT_LOADED);

    const TableRows *rows = table_call_read(call, "pca_fit", &query);
    const bool       empty = table_rows_used(rows) == 0;

    if (!empty) {
        request.points = pgkm_rows_points(rows->used);
        request.segment = pgkm_rows_segment(rows->used);
        model = pgkm_run_pca(&request, call->context, tupdesc);
    }
    table_call_destroy(call);
    if (empty)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(model);
}
