/*
 * table.cpp - gmm_fit and gmm_cluster: a mixture of a table by name.
 */
#include "pg/table/call.h"

#include "pg/gmm/gmm.h"
#include "pg/kmeans/options.h"
#include "pg/table/update.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_gmm_fit);
PG_FUNCTION_INFO_V1(pgkm_gmm_cluster);
}

/* Behind relation, features and k: the fields of gmm_options, and gmm_fit's loaded or gmm_cluster's
 * label_column and overwrite. */
#define ARGUMENT_OPTIONS TABLE_OPTIONS
#define ARGUMENT_LOADED  (ARGUMENT_OPTIONS + GMM_OPTION_COUNT)
#define ARGUMENT_LABEL   ARGUMENT_LOADED

/* Reads k and the options, which go to the call's context, into a request. */
static TableCall *begin_call(FunctionCallInfo fcinfo, PgkmMixtureRequest *request)
{
    TableCall *const call = table_call_create();

    memset(request, 0, sizeof *request);
    request->k = call->k = pgkm_k_argument(fcinfo, TABLE_K);
    pgkm_gmm_options_fields(fcinfo->args + ARGUMENT_OPTIONS, call->context, &request->options);
    return call;
}

/* False when there are no rows. The result lives as long as the call. */
static bool fit_rows(TableCall *call, const TableRows *rows, PgkmMixtureRequest *request, PgkmMixtureResult *result)
{
    if (table_rows_used(rows) == 0)
        return false;
    request->points = pgkm_rows_points(rows->used);
    request->segment = pgkm_rows_segment(rows->used);
    pgkm_run_mixture(request, call->context, &call->job, result);
    pgkm_warn_components(result, request->k);
    return true;
}

/*
 * gmm_fit(relation, features, k, ..., loaded) -> gmm_model
 *
 *   rows := SELECT features FROM relation, as the caller; or those that are loaded
 *   return the model of the rows that have features; NULL when there are none
 */
Datum pgkm_gmm_fit(PG_FUNCTION_ARGS)
{
    const TupleDesc    tupdesc = pgkm_gmm_model_tupdesc(fcinfo);
    PgkmMixtureRequest request;
    PgkmMixtureResult  result;
    TableCall *const   call = begin_call(fcinfo, &request);
    TableQuery         query;
    Datum              model = (Datum) 0;

    memset(&query, 0, sizeof query);
    table_call_find(call, fcinfo, TABLE_READ, NO_WEIGHT, ARGUMENT_LOADED);

    const bool found = fit_rows(call, table_call_read(call, "gmm_fit", &query), &request, &result);

    if (found)
        model = pgkm_gmm_model_build(&result, &request.options, tupdesc);
    table_call_destroy(call);
    if (!found)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(model);
}

/*
 * gmm_cluster(relation, features, k, ..., label_column, overwrite) -> setof (component_id, weight, mean, covariance)
 *
 *   as kmeans_cluster (pg/kmeans/cluster.cpp), with the component of the largest posterior as label
 */
Datum pgkm_gmm_cluster(PG_FUNCTION_ARGS)
{
    const Oid          id = table_call_relation(fcinfo);
    PgkmMixtureRequest request;
    PgkmMixtureResult  result;
    TableCall *const   call = begin_call(fcinfo, &request);
    LabelTarget        target;

    label_target_arguments(&target, fcinfo, ARGUMENT_LABEL, "component_id");
    InitMaterializedSRF(fcinfo, 0);
    request.want_labels = 1;

    TableRows *rows = table_read_for_update(call, fcinfo, id, &target, NO_WEIGHT, "gmm_cluster");
    const bool found = fit_rows(call, rows, &request, &result);

    pgkm_progress_writing();
    table_write_labels(call, rows, found ? result.labels : NULL, &target, fcinfo->flinfo->fn_oid);
    if (found) {
        ReturnSetInfo *output = (ReturnSetInfo *) fcinfo->resultinfo;

        pgkm_put_components(output->setResult, output->setDesc, request.options.covariance_type, result.k, result.d,
                            result.weights, result.means, result.covariances);
    }
    table_call_destroy(call);
    return (Datum) 0;
}
