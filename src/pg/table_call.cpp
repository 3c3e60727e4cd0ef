/*
 * table_call.cpp - arguments and fit of the table functions.
 */
#include "pg/table_call.h"

#include "pg/model.h"
#include "pg/options.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

static Datum required_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
    if (PG_ARGISNULL(number))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name)));
    return PG_GETARG_DATUM(number);
}

const char *table_call_relation_name(FunctionCallInfo fcinfo)
{
    return TextDatumGetCString(required_argument(fcinfo, TABLE_RELATION, "relation"));
}

TableCall *table_call_create(FunctionCallInfo fcinfo)
{
    MemoryContext    context = AllocSetContextCreate(CurrentMemoryContext, "kmeans table", ALLOCSET_DEFAULT_SIZES);
    TableCall *const call = (TableCall *) MemoryContextAllocZero(context, sizeof(TableCall));

    call->context = context;
    call->k = pgkm_k_argument(fcinfo, TABLE_K);
    pgkm_options_fields(fcinfo->args + TABLE_OPTIONS, context, &call->options);
    return call;
}

void table_call_find_columns(TableCall *call, FunctionCallInfo fcinfo)
{
    const Datum names = required_argument(fcinfo, TABLE_FEATURES, "features");

    call->features = table_features_find(&call->relation, DatumGetArrayTypeP(names), &call->n_features);
    if (PG_ARGISNULL(TABLE_WEIGHT))
        return;

    TableColumn *const weight = (TableColumn *) palloc(sizeof(TableColumn));

    table_column_find(weight, &call->relation, TextDatumGetCString(PG_GETARG_DATUM(TABLE_WEIGHT)));
    if (weight->kind != COLUMN_NUMBER)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("weight column \"%s\" is not a number", weight->name)));
    call->weight = weight;
}

TableRows *table_call_read(TableCall *call, const char *function, const TableQuery *how)
{
    TableQuery query = *how;
    instr_time start;
    instr_time duration;

    query.relation = &call->relation;
    query.features = call->features;
    query.n_features = call->n_features;
    query.weight = call->weight;
    pgkm_run_begin(&call->run, function, call->relation.id);
    pgkm_progress_scan(0, 0);
    INSTR_TIME_SET_CURRENT(start);

    TableRows *const rows = table_read(&query, call->context, &call->run.scan);

    INSTR_TIME_SET_CURRENT(duration);
    INSTR_TIME_SUBTRACT(duration, start);
    call->run.scan.rows = rows->n;
    call->run.scan.seconds = INSTR_TIME_GET_DOUBLE(duration);
    return rows;
}

const PgkmFitResult *table_call_fit(TableCall *call, const TableRows *rows, bool want_labels)
{
    PgkmFitRequest request;

    if (table_rows_used(rows) == 0)
        return NULL;
    pgkm_model_check_size(call->k, rows->used->n, rows->used->d);
    memset(&request, 0, sizeof request);
    request.points = pgkm_rows_points(rows->used);
    request.k = call->k;
    request.options = call->options;
    request.want_labels = want_labels;
    request.want_distances = want_labels;

    const PgkmFitResult *result = pgkm_run_fit(&request, call->context, &call->job);

    pgkm_warn_clusters(result, call->k);
    return result;
}

void table_call_destroy(TableCall *call)
{
    if (call->job != NULL)
        pgkm_release_fit(call->job);
    pgkm_run_end(&call->run);
    MemoryContextDelete(call->context);
}
