/*
 * table_cluster.cpp - kmeans_cluster: labels into a column of the table itself.
 */
#include "pg/table_call.h"

#include "pg/model.h"
#include "pg/table_update.h"

extern "C" {
#include "parser/scansup.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_table_cluster);
}

/* The label column's name, cut to the length of a name as the parser would. */
static char *label_argument(FunctionCallInfo fcinfo)
{
    if (PG_ARGISNULL(TABLE_LABEL))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("label_column must not be null")));

    char *label = TextDatumGetCString(PG_GETARG_DATUM(TABLE_LABEL));

    if (label[0] == '\0')
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("label_column must not be empty")));
    truncate_identifier(label, strlen(label), true);
    return label;
}

/* Labels that come from themselves would never settle. */
static void check_label_is_no_input(const TableCall *call, const char *label)
{
    bool used = call->weight != NULL && strcmp(call->weight->name, label) == 0;

    for (int i = 0; i < call->n_features; ++i)
        used = used || strcmp(call->features[i].name, label) == 0;
    if (used)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("label column \"%s\" must not be among the features or be the weight", label)));
}

/*
 * kmeans_cluster(relation, features, k, ..., label_column) -> setof (cluster_id, centroid, size, within_ss)
 *
 *   LOCK TABLE relation IN SHARE ROW EXCLUSIVE MODE        -- all as the caller
 *   if label_column is missing: ALTER TABLE relation ADD COLUMN label_column integer
 *   rows := SELECT features, weight, label_column, ctid, tableoid FROM relation
 *   fit; UPDATE the rows whose label changes
 *   return the centroids
 */
Datum pgkm_table_cluster(PG_FUNCTION_ARGS)
{
    const char *name = table_call_relation_name(fcinfo);
    const char *label = label_argument(fcinfo);
    TableCall  *call = table_call_create(fcinfo);
    TableQuery  query;

    InitMaterializedSRF(fcinfo, 0);
    table_lock_for_update(&call->relation, name);
    table_call_find_columns(call, fcinfo, TABLE_WEIGHT);
    check_label_is_no_input(call, label);
    table_ensure_label(&call->relation, label);

    memset(&query, 0, sizeof query);
    query.label = label;
    query.need_ctid = true;
    query.new_snapshot = true;

    TableRows           *rows = table_call_read(call, "kmeans_cluster", &query);
    const PgkmFitResult *result = table_call_fit(call, rows, true);

    pgkm_progress_writing();
    table_write_labels(call, rows, result == NULL ? NULL : result->labels, label,
                       fcinfo->flinfo->fn_oid);
    if (result != NULL) {
        ReturnSetInfo *target = (ReturnSetInfo *) fcinfo->resultinfo;
        PgkmModel      model;

        pgkm_model_of_result(result, call->options.metric, &model);
        pgkm_put_centroids(target->setResult, target->setDesc, &model);
    }
    table_call_destroy(call);
    return (Datum) 0;
}
