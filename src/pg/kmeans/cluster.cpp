/*
 * cluster.cpp - kmeans_cluster: labels into a column of the table itself.
 */
#include "pg/kmeans/model.h"

#include <algorithm>

#include "pg/nodes/places.h"
#include "pg/table/update.h"

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_cluster);
}

/* Which rows take part, as conditions that end in AND. */
static void append_conditions(StringInfo sql, const TableCall *call)
{
    if (call->weight != NULL)
        appendStringInfo(sql, "%s OPERATOR(pg_catalog.>) 0 AND ", quote_identifier(call->weight->name));
    if (call->filter != NULL)
        appendStringInfo(sql, "(%s\n) AND ",
                         call->filter->expression == NULL ? quote_identifier(call->filter->name) : call->filter->name);
    if (call->filter != NULL && call->filter->expression != NULL && call->filter->expression->is_volatile)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("rows of other servers cannot be labelled with a volatile filter"),
                        errhint("Use kmeans_fit.")));
    if (call->nulls != TABLE_NULLS_SKIP)
        return;
    if (table_columns_have_expressions(call))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("rows of other servers cannot be labelled with nulls => 'skip' beside expressions"),
                        errhint("Put the expressions into a view or generated columns.")));
    for (int i = 0; i < call->n_features; ++i) {
        const char *const name = quote_identifier(call->features[i].name);

        if (column_is_single(&call->features[i]))
            appendStringInfo(sql, "%s IS NOT NULL AND ", name);
        else if (call->features[i].kind == COLUMN_ARRAY)
            appendStringInfo(sql, "pg_catalog.array_position(%s, NULL) IS NULL AND ", name);
    }
}

/* The names of the columns that features and expressions are made of. */
static Datum names_read(const TableCall *call)
{
    TableColumn *const columns = (TableColumn *)palloc((call->n_features + call->n_inputs) * sizeof(TableColumn));
    int count = 0;

    for (int i = 0; i < call->n_features; ++i)
        if (call->features[i].expression == NULL)
            columns[count++].name = call->features[i].name;
    for (int i = 0; i < call->n_inputs; ++i) {
        const char *const name = call->inputs[i].name;

        if (std::none_of(columns, columns + count, [name](const TableColumn &c) { return strcmp(c.name, name) == 0; }))
            columns[count++].name = name;
    }
    return sources_names(columns, count);
}

/* The labels of rows that are not here, by what their values say; NULL where there is no result. */
static const LabelExpression *labels_by_value(const TableCall *call, const PgkmResult *result, FunctionCallInfo fcinfo)
{
    const TupleDesc tupdesc = pgkm_model_tupdesc(fcinfo);
    const Oid types[] = {tupdesc->tdtypeid, TEXTARRAYOID, ANYOID};
    const Oid row_types[] = {tupdesc->tdtypeid, ANYOID};
    const Oid schema = get_func_namespace(fcinfo->flinfo->fn_oid);
    LabelExpression *const labels = (LabelExpression *)palloc(sizeof(LabelExpression));
    StringInfoData condition;

    if (result == NULL)
        return NULL;
    initStringInfo(&condition);
    append_conditions(&condition, call);
    appendStringInfoString(&condition, "true");
    *labels = {condition.data,
               table_find_function(schema, "pgkm_row_kmeans_predict", types, lengthof(types)),
               table_find_function(schema, "kmeans_predict", row_types, lengthof(row_types)),
               names_read(call),
               tupdesc->tdtypeid,
               pgkm_model_of_fit(result, &call->request, call, tupdesc)};
    return labels;
}

/*
 * Rows that lie on other servers get their labels there, by an UPDATE that says what they are. postgres_fdw sends it
 * whole where its option `extensions` names ours.
 */
static const PgkmResult *cluster_elsewhere(TableCall *call, FunctionCallInfo fcinfo, LabelTarget *target)
{
    const bool unchanged = !node_may_have_changed(call->arguments.relation); /* the lock is work of Citus, too */
    const PgkmOptions *const options = &call->request.kmeans;

    if (options->min_size != 0 || options->max_size != 0)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("kmeans_cluster with min_size or max_size cannot label rows of other servers"),
                        errdetail("Rows get their labels there by the nearest centroid, which need not be theirs."),
                        errhint("Use kmeans_fit.")));

    table_read_elsewhere(call, target, {.on_nodes = fit_wish(&kmeans_kind, call).on_nodes, .unchanged = unchanged},
                         "kmeans_cluster");

    const PgkmResult *result = fit_rows(&kmeans_kind, call);

    pgkm_progress_writing();
    table_write_by_value(call, result, labels_by_value(call, result, fcinfo), target, InvalidOid);
    return result;
}

static const PgkmResult *cluster_here(TableCall *call, FunctionCallInfo fcinfo, LabelTarget *target)
{
    table_read_for_update(call, target, fit_wish(&kmeans_kind, call), "kmeans_cluster");
    call->request.want_labels = call->stream == NULL;

    const PgkmResult *const result = fit_rows(&kmeans_kind, call);

    pgkm_progress_writing();
    if (call->stream != NULL)
        table_write_by_value(call, result, labels_by_value(call, result, fcinfo), target, fcinfo->flinfo->fn_oid);
    else
        table_write_labels(call, result, target, fcinfo->flinfo->fn_oid);
    return result;
}

/*
 * kmeans_cluster(relation, features, k, options, ..., label_column, overwrite) -> kmeans_model
 *
 *   LOCK TABLE relation IN SHARE ROW EXCLUSIVE MODE        -- all as the caller
 *   rows := SELECT features, weight, label_column, ctid, tableoid FROM relation
 *   fit
 *   if label_column is missing: ALTER TABLE relation ADD COLUMN label_column integer; COMMENT
 *   UPDATE the rows whose label changes; by kmeans_predict where rows lie on other servers, or are streamed
 *   return the model; NULL when there are no rows
 */
Datum pgkm_kmeans_cluster(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_model_tupdesc(fcinfo);
    TableCall *call = fit_call_of_arguments(&kmeans_kind, fcinfo);
    LabelTarget target;

    label_target_arguments(&target, fcinfo, call->arguments.next, "cluster_id");
    call->arguments.label = target.name;

    const PgkmResult *const result = node_rows_elsewhere(call->arguments.relation)
                                         ? cluster_elsewhere(call, fcinfo, &target)
                                         : cluster_here(call, fcinfo, &target);

    return fit_return(&kmeans_kind, call, fcinfo, result, tupdesc);
}
