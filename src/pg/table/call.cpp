/*
 * call.cpp - arguments and fit of the table functions.
 */
#include "pg/table/call.h"

#include "pg/table/loaded.h"
#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"

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

Oid table_call_relation(FunctionCallInfo fcinfo)
{
    return DatumGetObjectId(required_argument(fcinfo, TABLE_RELATION, "relation"));
}

TableCall *table_call_create_plain(FunctionCallInfo)
{
    MemoryContext    context = AllocSetContextCreate(CurrentMemoryContext, "kmeans table", ALLOCSET_DEFAULT_SIZES);
    TableCall *const call = (TableCall *) MemoryContextAllocZero(context, sizeof(TableCall));

    call->context = context;
    return call;
}

TableCall *table_call_create(FunctionCallInfo fcinfo)
{
    TableCall *const call = table_call_create_plain(fcinfo);

    call->k = pgkm_k_argument(fcinfo, TABLE_K);
    pgkm_options_fields(fcinfo->args + TABLE_OPTIONS, call->context, &call->options);
    return call;
}

void table_call_find_columns(TableCall *call, FunctionCallInfo fcinfo, int weight_number)
{
    const Datum names = required_argument(fcinfo, TABLE_FEATURES, "features");

    call->features = table_features_find(&call->relation, DatumGetArrayTypeP(names), &call->n_features);
    if (weight_number == NO_WEIGHT || PG_ARGISNULL(weight_number))
        return;

    TableColumn *const weight = (TableColumn *) palloc(sizeof(TableColumn));

    table_weight_find(weight, &call->relation, TextDatumGetCString(PG_GETARG_DATUM(weight_number)));
    call->weight = weight;
}

void table_call_find(TableCall *call, FunctionCallInfo fcinfo, TableUse use, int weight, int loaded)
{
    const bool from_loaded = !PG_ARGISNULL(loaded) && PG_GETARG_BOOL(loaded);

    table_relation_find(&call->relation, table_call_relation(fcinfo), use, !from_loaded);
    table_call_find_columns(call, fcinfo, weight);
    if (from_loaded)
        call->loaded = pgkm_loaded_use(call);
}

TableRows *table_call_read(TableCall *call, const char *function, const TableQuery *how)
{
    if (call->loaded == NULL)
        return table_call_read_into(call, function, how, call->context);
    pgkm_run_begin(&call->run, function, call->relation.id);
    call->run.scan.road = "loaded";
    return call->loaded->rows;
}

TableRows *table_call_read_into(TableCall *call, const char *function, const TableQuery *how, MemoryContext context)
{
    TableQuery query = *how;
    instr_time start;
    instr_time duration;

    query.relation = &call->relation;
    query.features = call->features;
    query.n_features = call->n_features;
    query.weight = call->weight;
    /* Standardized rows are others: what is zero then the engine alone sees. */
    query.need_direction = call->options.metric == PGKM_COSINE && call->options.standardize == 0;
    pgkm_run_begin(&call->run, function, call->relation.id);
    pgkm_progress_scan(0, 0);
    INSTR_TIME_SET_CURRENT(start);

    TableRows *const rows = table_read(&query, context, &call->run.scan);

    table_rows_shrink(rows);
    INSTR_TIME_SET_CURRENT(duration);
    INSTR_TIME_SUBTRACT(duration, start);
    call->run.scan.rows = rows->n;
    call->run.scan.seconds = INSTR_TIME_GET_DOUBLE(duration);
    return rows;
}

void table_call_request(const TableCall *call, const TableRows *rows, PgkmFitRequest *request)
{
    memset(request, 0, sizeof *request);
    request->points = pgkm_rows_points(rows->used);
    request->segment = pgkm_rows_segment(rows->used);
    request->k = call->k;
    request->options = call->options;
    request->resident = call->loaded == NULL ? NULL : call->loaded->resident;
}

static void end_reading(void *rows)
{
    table_read_end((TableRows *) rows);
}

const PgkmFitResult *table_call_fit(TableCall *call, TableRows *rows, bool want_labels, bool want_distances)
{
    const PgkmMeanwhile meanwhile = {end_reading, rows};
    PgkmFitRequest      request;

    if (table_rows_used(rows) == 0) {
        table_read_end(rows);
        return NULL;
    }
    pgkm_model_check_size(call->k, rows->used->n, rows->used->d);
    table_call_request(call, rows, &request);
    request.want_labels = want_labels;
    request.want_distances = want_distances;

    const PgkmFitResult *result = pgkm_run_fit(&request, call->context, &call->job, &meanwhile);

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
