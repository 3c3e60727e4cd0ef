/*
 * table.cpp - gmm_fit, gmm_labels and gmm_cluster: a mixture of a table by name.
 */
#include "pg/table/call.h"

#include "pg/gmm/gmm.h"
#include "pg/kmeans/options.h"
#include "pg/table/update.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_gmm_table_fit);
PG_FUNCTION_INFO_V1(pgkm_gmm_table_labels);
PG_FUNCTION_INFO_V1(pgkm_gmm_table_cluster);
}

/* Reads k and the options. */
static TableCall *begin_call(FunctionCallInfo fcinfo)
{
    TableCall *const call = pgkm_gmm_call_create(table_arguments(fcinfo, TABLE_OPTIONS));

    call->request.k = pgkm_k_argument(fcinfo, TABLE_K);
    return call;
}

/* NULL when there are no rows. The result lives as long as the call. */
static const PgkmResult *fit_rows(TableCall *call, TableRows *rows)
{
    if (table_call_used(call, rows) == 0)
        return NULL;
    table_call_request(call, rows);
    pgkm_mixture_check_size(&call->request);
    return table_call_fit(call);
}

/* Returns the model; NULL where there are no rows. */
static Datum end_call(TableCall *call, FunctionCallInfo fcinfo, const PgkmResult *result, TupleDesc tupdesc)
{
    Datum model = (Datum)0;

    if (result != NULL)
        model = pgkm_gmm_model_build(result, &call->request.mixture, call->fills, tupdesc);
    return table_call_return(call, fcinfo, model);
}

/*
 * gmm_fit(relation, features, k, options, ...) -> gmm_model
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum pgkm_gmm_table_fit(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_gmm_model_tupdesc(fcinfo);
    TableCall *const call = begin_call(fcinfo);
    TableQuery query = {};

    query.on_nodes = query.may_stream = true;
    table_call_find(call, TABLE_READ);

    return end_call(call, fcinfo, fit_rows(call, table_call_read(call, "gmm_fit", &query)), tupdesc);
}

static void put_labels(const TableCall *call, const TableRows *rows, const PgkmResult *result, ReturnSetInfo *target)
{
    TableCursor cursor;

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        const bool used = cursor.used >= 0;
        const Oid table = rows->wants.table ? rows->tables[cursor.position] : call->relation.id;

        pgkm_result_put(target, {PointerGetDatum(&rows->ctids[cursor.position]),
                                 pgkm_value_if(used, used ? result->labels[cursor.used] : 0), table});
        CHECK_FOR_INTERRUPTS();
    }
}

/*
 * gmm_labels(relation, features, k, options, ...) -> setof (row_ctid, component_id, row_table)
 *
 *   rows := SELECT features, weight, ctid, tableoid FROM relation, as the caller; or those that are loaded
 *   return each row's component of the largest posterior, in the order of the rows; NULL for one that takes no part
 */
Datum pgkm_gmm_table_labels(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    TableCall *const call = begin_call(fcinfo);
    TableQuery query = {};

    query.need_ctid = true;
    table_call_find(call, TABLE_LOCATE);
    call->request.want_labels = 1;

    TableRows *const rows = table_call_read(call, "gmm_labels", &query);

    table_call_check_places(call, rows);

    const PgkmResult *const result = fit_rows(call, rows);

    pgkm_progress_writing();
    put_labels(call, rows, result, target);
    table_call_destroy(call);
    return (Datum)0;
}

/*
 * gmm_cluster(relation, features, k, options, ..., label_column, overwrite) -> gmm_model
 *
 *   as kmeans_cluster (pg/kmeans/cluster.cpp), with the component of the largest posterior as label
 */
Datum pgkm_gmm_table_cluster(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_gmm_model_tupdesc(fcinfo);
    TableCall *const call = begin_call(fcinfo);
    LabelTarget target;

    label_target_arguments(&target, fcinfo, call->arguments.next, "component_id");
    call->request.want_labels = 1;

    TableRows *rows = table_read_for_update(call, &target, false, "gmm_cluster");
    const PgkmResult *result = fit_rows(call, rows);

    pgkm_progress_writing();
    table_write_labels(call, rows, result, &target, fcinfo->flinfo->fn_oid);
    return end_call(call, fcinfo, result, tupdesc);
}
