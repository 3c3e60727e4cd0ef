/*
 * call.cpp - arguments and rows of the table functions, and the way by which rows are read.
 */
#include "pg/table/call.h"

#include "pg/nodes/nodes.h"
#include "pg/nodes/places.h"
#include "pg/run/fit_count.h"
#include "pg/scan/scan.h"
#include "pg/settings.h"
#include "pg/table/loaded.h"
#include "pg/table/stream.h"
#include "pg/values/datum.h"
#include "pg/values/options.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

Oid table_call_relation(FunctionCallInfo fcinfo)
{
    return DatumGetObjectId(pgkm_required(&fcinfo->args[TABLE_RELATION], "relation"));
}

TableArguments table_arguments(FunctionCallInfo fcinfo, int first, int count)
{
    const NullableDatum *const given = fcinfo->args;
    NullableDatum common[5];

    for (int i = 0; i < (int)lengthof(common); ++i)
        common[i] = i < count ? given[first + i] : NullableDatum{0, true};
    return {table_call_relation(fcinfo),
            given[TABLE_FEATURES],
            common[0],
            common[1],
            common[2],
            common[3],
            common[4],
            first + count};
}

TableCall *table_call_create(void)
{
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "kmeans table", ALLOCSET_DEFAULT_SIZES);
    TableCall *const call = (TableCall *)MemoryContextAllocZero(context, sizeof(TableCall));

    call->context = context;
    return call;
}

static TableMemory read_memory(const NullableDatum *argument)
{
    static const PgkmWord words[] = {{"auto", TABLE_MEMORY_AUTO},
                                     {"resident", TABLE_MEMORY_RESIDENT},
                                     {"stream", TABLE_MEMORY_STREAM},
                                     {"loaded", TABLE_MEMORY_LOADED}};
    static const PgkmWords all = {words, lengthof(words), "'auto', 'resident', 'stream' or 'loaded'",
                                  "Rows are kept in memory ('resident'), read anew for each pass over them ('stream'), "
                                  "or those that kmeans_load keeps ('loaded')."};

    return (TableMemory)pgkm_word_argument(argument, "memory", &all, TABLE_MEMORY_AUTO);
}

TableCall *table_call_create(const TableArguments &arguments)
{
    TableCall *const call = table_call_create();

    call->arguments = arguments;
    call->memory = read_memory(&arguments.memory);
    return call;
}

static const PgkmWord nulls_words[] = {
    {"error", TABLE_NULLS_ERROR}, {"skip", TABLE_NULLS_SKIP}, {"mean", TABLE_NULLS_MEAN}};
static const PgkmWords all_nulls = {nulls_words, lengthof(nulls_words), "'error', 'skip' or 'mean'",
                                    "It says what becomes of a row that has a NULL beside other values."};

const char *table_nulls_name(TableNulls nulls)
{
    return pgkm_word_of(&all_nulls, nulls);
}

/* The column that an argument names, by `find`; NULL where it names none. */
static TableColumn *find_column(const TableCall *call, const NullableDatum *name,
                                void (*find)(TableColumn *, const TableRelation *, const char *))
{
    TableColumn *column = NULL;

    if (!name->isnull) {
        column = (TableColumn *)palloc(sizeof(TableColumn));
        find(column, &call->relation, TextDatumGetCString(name->value));
    }
    return column;
}

void table_call_find_columns(TableCall *call)
{
    const TableArguments *const given = &call->arguments;
    const Datum names = pgkm_required(&given->features, "features");

    call->features = table_features_find(&call->relation, DatumGetArrayTypeP(names), &call->n_features);
    table_call_check_model(call);
    call->weight = find_column(call, &given->weight, table_weight_find);
    call->nulls = (TableNulls)pgkm_word_argument(&given->nulls, "nulls", &all_nulls, TABLE_NULLS_ERROR);
    call->takes_nulls = true;
    call->filter = find_column(call, &given->filter, table_filter_find);
}

void table_call_find(TableCall *call, TableUse use)
{
    const bool is_loaded = call->memory == TABLE_MEMORY_LOADED;

    if (is_loaded && (use == TABLE_UPDATE || use == TABLE_WRITE))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("memory must be 'auto', 'resident' or 'stream' where labels are written")));
    table_relation_find(&call->relation, call->arguments.relation, use, !is_loaded);
    table_call_find_columns(call);
    if (is_loaded)
        call->loaded = pgkm_loaded_use(call);
}

TableRows *table_call_read(TableCall *call, const char *function, const TableQuery *how)
{
    if (call->loaded == NULL)
        return table_call_read_into(call, function, how, call->context);
    pgkm_run_begin(&call->run, function, call->relation.id);
    call->run.scan.way = "loaded";
    call->nodes = call->loaded->nodes;
    call->fills = call->loaded->rows->fills;
    if (call->nodes != NULL && !how->on_nodes)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("rows of relation \"%s\" are loaded on other servers", call->relation.name),
                        errdetail("Labels, mini-batches, and the first rows as centroids need all rows on this one."),
                        errhint("Set \"pg_kmeans.distributed\" to off and call kmeans_load again.")));
    return call->loaded->rows;
}

static TableRows *no_rows(MemoryContext context)
{
    TableWants nothing;

    memset(&nothing, 0, sizeof nothing);
    return table_rows_create(context, nothing);
}

/* Has other servers load their rows, and reads those of this one meanwhile. NULL where this server has to read all. */
static TableRows *read_with_nodes(TableCall *call, const TableQuery *query, MemoryContext context)
{
    const PgkmElement element = table_columns_element(query->features, query->n_features);
    List *local = NIL;
    int32 workers;

    call->nodes = nodes_begin(query, context, &local);
    if (call->nodes == NULL)
        return NULL;

    TableRows *const rows =
        local == NIL ? no_rows(context) : scan_finish(scan_begin(query, local, context), 0, &workers);

    if (nodes_await(call->nodes, element))
        return rows;
    nodes_end(call->nodes);
    call->nodes = NULL;
    table_rows_clear(rows);
    return NULL;
}

/* For an error about memory: what keeps the rows there. */
static void tell_option(void *of)
{
    const TableCall *const call = (const TableCall *)of;

    if (call->kept_by != NULL && geterrcode() == ERRCODE_PROGRAM_LIMIT_EXCEEDED)
        errhint("Raise \"pg_kmeans.memory_limit\", which is %llu kB, or do without %s: then rows can be streamed.",
                (unsigned long long)(pgkm_memory_limit() / 1024), call->kept_by);
}

static void watch_errors(TableCall *call, ErrorContextCallback *watch)
{
    watch->callback = tell_option;
    watch->arg = call;
    watch->previous = error_context_stack;
    error_context_stack = watch;
}

/* Takes the way that suits the query, and tells which in *report. */
static TableRows *read_rows(TableCall *call, const TableQuery *query, MemoryContext context, PgkmScanReport *report)
{
    List *tables = NIL;

    if (query->on_nodes && !query->streamed) {
        TableRows *const rows = read_with_nodes(call, query, context);

        report->way = "nodes";
        report->workers = 0;
        if (rows != NULL)
            return rows;
    }

    if (query->need_ctid && !table_may_read_ctid(query->relation))
        table_raise_denied(query->relation,
                           "To know rows by their ctid needs the SELECT privilege on the whole table, not on columns.");
    report->way = "executor";
    report->workers = 0;
    if (!scan_possible(query, &tables))
        return table_select(query, context);

    DirectScan *const scan = scan_begin(query, tables, context);

    if (query->may_stream && call->memory != TABLE_MEMORY_RESIDENT) {
        call->stream = table_stream_begin(call, query, scan, context, report);
        report->way = "stream";
        if (call->stream != NULL)
            return no_rows(context);
    }
    report->way = "direct";
    if (call->memory == TABLE_MEMORY_AUTO)
        call->kept_by = query->kept_by;
    return scan_finish(scan, call->streamed_bytes, &report->workers);
}

/* Puts means in the place of NULLs. */
static void fill_missing(const TableCall *call, TableRows *rows)
{
    PgkmRows *const used = rows->used;
    int32 feature = 0;
    PgkmError error;

    if (used == NULL || used->n == 0)
        return;
    rows->fills = (double *)MemoryContextAlloc(rows->context, used->d * sizeof(double));
    if (pgkm_fill_missing(used->values, used->element, used->n, used->d, used->weighted ? used->weights : NULL,
                          rows->fills, &feature, pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error);
    if (feature == 0)
        return;
    if (call->features[0].kind == COLUMN_NUMBER)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("column \"%s\" has no value to take the mean of", call->features[feature - 1].name)));
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
             errmsg("feature %d of column \"%s\" has no value to take the mean of", feature, call->features[0].name)));
}

static void check_may_be_streamed(const TableQuery *query)
{
    if (node_rows_elsewhere(query->relation->id))
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("relation \"%s\" has rows on other servers, which cannot be streamed", query->relation->name),
                 errhint("Leave memory out: each server keeps its own rows in memory then.")));
    if (!query->may_stream)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this call needs all rows in memory"),
                 query->kept_by != NULL
                     ? errdetail("Rows cannot be streamed with %s.", query->kept_by)
                     : errdetail("kmeans_fit, kmeans_cluster, kmeans_sweep, gmm_fit and pca_fit can stream rows."),
                 errhint("Use memory => 'resident'.")));
}

TableRows *table_call_read_into(TableCall *call, const char *function, const TableQuery *how, MemoryContext context)
{
    TableQuery query = *how;
    ErrorContextCallback watch;
    instr_time start;
    instr_time duration;

    (TableColumns &)query = *call;
    query.relation = &call->relation;
    /* Other servers read rows as they are. */
    query.on_nodes = query.on_nodes && call->filter == NULL && call->nulls == TABLE_NULLS_ERROR;
    query.streamed = call->memory == TABLE_MEMORY_STREAM;
    if (query.may_stream && call->nulls == TABLE_NULLS_MEAN) {
        query.may_stream = false;
        query.kept_by = "nulls => 'mean'";
    }
    if (query.streamed)
        check_may_be_streamed(&query);
    pgkm_run_begin(&call->run, function, call->relation.id);
    pgkm_progress_scan(0, 0);
    INSTR_TIME_SET_CURRENT(start);
    watch_errors(call, &watch);

    TableRows *const rows = read_rows(call, &query, context, &call->run.scan);

    table_rows_shrink(rows);
    if (call->nulls == TABLE_NULLS_MEAN && !call->keeps_missing)
        fill_missing(call, rows);
    call->fills = rows->fills;
    error_context_stack = watch.previous;
    INSTR_TIME_SET_CURRENT(duration);
    INSTR_TIME_SUBTRACT(duration, start);
    if (call->stream == NULL)
        call->run.scan.rows = rows->n;
    call->run.scan.seconds = INSTR_TIME_GET_DOUBLE(duration);
    return rows;
}

void table_call_check_places(const TableCall *call, const TableRows *rows)
{
    if (!rows->wants.ctid)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for table %s", call->relation.name),
                 errdetail("The rows were loaded without the right to read ctid.")));
    if (call->loaded != NULL)
        pgkm_loaded_check_places(call->loaded);
}

int64 table_call_used(const TableCall *call, const TableRows *rows)
{
    if (call->stream != NULL)
        return table_stream_rows(call->stream);
    return table_rows_used(rows) + (call->nodes == NULL ? 0 : nodes_rows(call->nodes));
}

int32 table_call_features(const TableCall *call, const TableRows *rows)
{
    if (call->stream != NULL)
        return table_stream_features(call->stream);
    return rows->used == NULL ? nodes_features(call->nodes) : rows->used->d;
}

/* The rows of other servers take part; there may be none here. */
static void request_nodes(TableCall *call, const TableRows *rows)
{
    PgkmRequest *const request = &call->request;
    static const double none = 0;

    request->nodes = nodes_list(call->nodes, &request->n_nodes);
    if (rows->used == NULL)
        request->points = {&none, table_columns_element(call->features, call->n_features), 0,
                           nodes_features(call->nodes), call->weight == NULL ? NULL : &none};
    else if (nodes_rows(call->nodes) > 0 && rows->used->d != nodes_features(call->nodes))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("this server has rows of %d features, others have %d",
                                                                  rows->used->d, nodes_features(call->nodes))));
}

void table_call_request(TableCall *call, const TableRows *rows)
{
    if (rows->used != NULL) {
        call->request.points = pgkm_rows_points(rows->used);
        call->request.segment = rows->used->segment;
    }
    if (call->stream != NULL)
        table_stream_request(call->stream, &call->request);
    if (call->nodes != NULL)
        request_nodes(call, rows);
    if (call->loaded == NULL)
        call->request.resident = call->resident;
    else
        call->request.resident = call->nodes == NULL ? call->loaded->resident : NULL;
}

void table_call_keep_rows(TableCall *call)
{
    if (call->nodes == NULL && call->loaded == NULL)
        call->resident = pgkm_run_keep_rows(call->context);
}

/* Of a sweep every fit counts, and the k of those that found less is seen in its rows. Of a tree k are leaves. */
static void warn_of_fits(const TableCall *call, const PgkmResult *first)
{
    const PgkmRequest *const request = &call->request;
    PgkmFitCount count = {};
    PgkmResult result = *first;

    if (request->algorithm == PGKM_PCA || request->algorithm == PGKM_REDUCTION)
        return;
    pgkm_count_fit(&count, request, &result);
    if (request->k_last == 0 && request->algorithm != PGKM_TREE)
        pgkm_count_fewer(&count, request->algorithm, first, request->k);
    for (int64 i = 1; i <= request->k_last - request->k; ++i) {
        pgkm_result_of(call->job, i, &result);
        pgkm_count_fit(&count, request, &result);
    }
    pgkm_warn_counted(&count);
}

const PgkmResult *table_call_fit(TableCall *call)
{
    const PgkmMeanwhile meanwhile =
        call->stream == NULL ? PgkmMeanwhile{NULL, NULL, 0} : table_stream_meanwhile(call->stream);

    if (call->streamed_bytes > 0 && pgkm_lacks_memory(&call->request))
        pgkm_raise_streamed_memory(call->streamed_bytes);

    ErrorContextCallback watch;

    watch_errors(call, &watch);

    const PgkmResult *result = pgkm_run_job(&call->request, call->context, &call->job, &meanwhile);

    error_context_stack = watch.previous;
    if (call->stream != NULL)
        table_stream_end(call->stream);
    if (call->nodes != NULL)
        nodes_rest(call->nodes);
    warn_of_fits(call, result);
    return result;
}

void table_call_destroy(TableCall *call)
{
    if (call->job != NULL)
        pgkm_release_job(call->job);
    if (call->nodes != NULL && call->loaded == NULL)
        nodes_end(call->nodes);
    pgkm_run_end(&call->run);
    MemoryContextDelete(call->context);
}

Datum table_call_return(TableCall *call, FunctionCallInfo fcinfo, Datum value)
{
    table_call_destroy(call);
    if (value == (Datum)0)
        PG_RETURN_NULL();
    PG_RETURN_DATUM(value);
}
