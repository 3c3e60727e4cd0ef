/*
 * call.cpp - options and fit of the k-means functions over whole tables.
 */
#include "pg/kmeans/call.h"

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"
#include "pg/scan/scan.h"

extern "C" {
#include "access/xact.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"
}

TableCall *kmeans_call_create(const TableArguments &arguments, const char *function,
                              std::initializer_list<const char *> unusable)
{
    TableCall *const call = table_call_create(arguments);
    PgkmOptions *const read = &call->request.kmeans;
    NullableDatum fields[PGKM_KMEANS_OPTIONS];

    call->request.algorithm = PGKM_KMEANS;
    pgkm_options_open(&pgkm_kmeans_options_type, &arguments.options, fields);
    pgkm_options_fields(&pgkm_kmeans_options_type, fields, call->context, read);
    for (const char *option : unusable)
        pgkm_options_refuse(&pgkm_kmeans_options_type, read, option, function);
    call->init_is_free = kmeans_init_is_free(&fields[PGKM_OPTION_INIT]);
    if (!fields[PGKM_OPTION_INIT_MODEL].isnull)
        call->model_features = pgkm_model_features(fields[PGKM_OPTION_INIT_MODEL].value);
    /* Standardized rows are others: what is zero then the engine alone sees. */
    call->need_direction = read->metric == PGKM_COSINE && read->standardize == 0;
    return call;
}

TableCall *kmeans_call_of_arguments(FunctionCallInfo fcinfo)
{
    const int64 k = pgkm_k_argument(fcinfo, TABLE_K);
    TableCall *const call = kmeans_call_create(table_arguments(fcinfo, TABLE_OPTIONS));

    const PgkmGiven *const model = &call->request.kmeans.init_model.centroids;

    if (model->dimensions > 0 && model->extent[0] != k)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be that of init_model, which is %d, not %lld", model->extent[0], (long long)k),
                        errhint("A fit goes on with the clusters of the model.")));
    call->request.k = k;
    return call;
}

static void put_member(StringInfo json, const char *name, const char *value)
{
    appendStringInfo(json, ", \"%s\": ", name);
    escape_json(json, value);
}

/* What says which rows take part, as members of the options. */
static char *row_options(const TableCall *call)
{
    StringInfoData json;

    initStringInfo(&json);
    if (call->weight != NULL)
        put_member(&json, "weight", call->weight->name);
    if (call->nulls != TABLE_NULLS_ERROR)
        put_member(&json, "nulls", table_nulls_name(call->nulls));
    if (call->filter != NULL)
        put_member(&json, "filter", call->filter->name);
    return json.data;
}

/* Where the model of a call comes from. */
static PgkmOrigin origin_of(const TableCall *call)
{
    PgkmOrigin origin;

    origin.features = table_call_feature_names(call);
    origin.relation = call->relation.sql_name;
    origin.options = pgkm_kmeans_options_json(&call->request.kmeans, row_options(call));
    origin.fitted_at = TimestampTzGetDatum(GetCurrentTransactionStartTimestamp());
    return origin;
}

bool kmeans_call_is_spreadable(const TableCall *call)
{
    const PgkmOptions *const options = &call->request.kmeans;

    return options->init != PGKM_INIT_FIRST && options->batch_size == 0 && options->min_size == 0 &&
           options->max_size == 0 && options->max_radius == 0;
}

const PgkmResult *kmeans_call_fit(TableCall *call, TableRows *rows, bool want_labels, bool want_distances)
{
    if (table_call_used(call, rows) == 0)
        return NULL;
    pgkm_model_check_size(call->request.k, table_call_used(call, rows), table_call_features(call, rows));
    table_call_request(call, rows);
    call->request.want_labels = want_labels;
    call->request.want_distances = want_distances;
    return table_call_fit(call);
}

Datum kmeans_call_return(TableCall *call, FunctionCallInfo fcinfo, const PgkmResult *result, TupleDesc tupdesc)
{
    Datum model = (Datum)0;

    if (result != NULL) {
        const PgkmOrigin origin = origin_of(call);

        model = pgkm_model_build(result, &call->request.kmeans, &origin, call->fills, tupdesc);
    }
    return table_call_return(call, fcinfo, model);
}
