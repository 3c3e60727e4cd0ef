/*
 * cluster.cpp - kmeans_cluster: labels into a column of the table itself.
 */
#include "pg/kmeans/model.h"

#include <algorithm>

#include "pg/nodes/places.h"
#include "pg/table/update.h"

extern "C" {
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_cluster);
PG_FUNCTION_INFO_V1(pgkm_kmeans_cluster_batches);
}

/* Which rows take part. */
static const char *conditions_of(const TableCall *call)
{
    const StringInfo sql = makeStringInfo();

    if (call->weight != NULL)
        appendStringInfo(sql, "%s OPERATOR(pg_catalog.>) 0 AND ", quote_identifier(call->weight->name));
    if (call->filter != NULL)
        appendStringInfo(sql, "(%s\n) AND ",
                         call->filter->expression == NULL ? quote_identifier(call->filter->name) : call->filter->name);
    if (call->filter != NULL && call->filter->expression != NULL && call->filter->expression->is_volatile)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("rows cannot be labelled by their values with a volatile filter"), errhint("Use kmeans_fit.")));
    if (call->nulls == TABLE_NULLS_SKIP && table_columns_have_expressions(call))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("rows cannot be labelled by their values with nulls => 'skip' beside expressions"),
                        errhint("Put the expressions into a view or generated columns.")));
    for (int i = 0; call->nulls == TABLE_NULLS_SKIP && i < call->n_features; ++i) {
        const char *const name = quote_identifier(call->features[i].name);

        if (column_is_single(&call->features[i]))
            appendStringInfo(sql, "%s IS NOT NULL AND ", name);
        else if (call->features[i].kind == COLUMN_ARRAY)
            appendStringInfo(sql, "pg_catalog.array_position(%s, NULL) IS NULL AND ", name);
    }
    appendStringInfoString(sql, "true");
    return sql->data;
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

    if (result == NULL)
        return NULL;
    *labels = {conditions_of(call),
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
    const char *const bound = pgkm_bound_given(&call->request.kmeans);

    if (bound != NULL)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("kmeans_cluster with %s cannot label rows of other servers", bound),
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

/* As the server says where a procedure cannot end the transaction, before the fit. */
static void check_may_commit(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) || ((CallContext *)fcinfo->context)->atomic ||
        IsSubTransaction())
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
                 errmsg("kmeans_cluster_batches cannot run inside a transaction block or a function"),
                 errdetail("It commits each batch."), errhint("Use CALL alone, or kmeans_cluster in a transaction.")));
}

static void check_has_no_bounds(const PgkmOptions *options)
{
    if (options->min_size != 0 || options->max_size != 0)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("kmeans_cluster_batches cannot write labels with min_size or max_size"),
                 errdetail("Rows get their labels by the nearest centroid, which need not be theirs within bounds."),
                 errhint("Use kmeans_cluster.")));
}

/*
 * kmeans_cluster_batches(relation, features, k, options, ..., label_column, overwrite, batch_rows, INOUT model,
 *     INOUT rows_written)
 *
 *   fit as kmeans_fit does; commit
 *   if label_column is missing: add it as kmeans_cluster does; commit
 *   until no row has another label than kmeans_predict says: UPDATE at most batch_rows of these; commit
 *
 * What outlives a transaction lies in the context of the CALL, and no snapshot does.
 */
Datum pgkm_kmeans_cluster_batches(PG_FUNCTION_ARGS)
{
    static const char name[] = "kmeans_cluster_batches";
    const MemoryContext context = CurrentMemoryContext;
    TupleDesc row;
    LabelTarget target;
    PgkmRun run = {};

    check_may_commit(fcinfo);
    get_call_result_type(fcinfo, NULL, &row);
    BlessTupleDesc(row);

    TableCall *const call = fit_call_of_arguments(&kmeans_kind, fcinfo);
    const Oid relation = call->arguments.relation;
    const int next = call->arguments.next;
    const int32 batch_rows = PG_ARGISNULL(next + 2) ? 10000 : PG_GETARG_INT32(next + 2);

    if (batch_rows < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("batch_rows must be at least 1")));
    check_has_no_bounds(&call->request.kmeans);
    label_target_arguments(&target, fcinfo, next, "cluster_id");
    call->arguments.label = target.name;
    SPI_connect_ext(SPI_OPT_NONATOMIC);
    MemoryContextSwitchTo(context);
    table_begin_batches(call, &target, name);
    conditions_of(call); /* raises what stands against them before the rows are read */
    table_call_read(call, name, fit_wish(&kmeans_kind, call));

    const PgkmResult *const result = fit_rows(&kmeans_kind, call);
    const LabelExpression *const by_value = labels_by_value(call, result, fcinfo);
    const int64 k = result == NULL ? 0 : result->k;
    const int64 n = call->n;

    table_call_destroy(call);
    table_next_transaction();
    pgkm_run_begin(&run, name, relation);
    pgkm_progress_writing();
    table_prepare_batches(&target, relation, k);
    table_next_transaction();

    const int64 written = table_write_in_batches(relation, target.name, by_value, n, batch_rows);

    pgkm_run_end(&run);
    SPI_finish();
    MemoryContextSwitchTo(context);
    return pgkm_composite_make(row, {by_value == NULL ? PgkmValue() : PgkmValue(by_value->model), written});
}
