/*
 * read.cpp - the rows of a table function's call: by which way they are read, and what of them the request is for.
 */
#include "pg/table/call.h"

#include "pg/nodes/nodes.h"
#include "pg/nodes/places.h"
#include "pg/scan/scan.h"
#include "pg/table/loaded.h"
#include "pg/table/stream.h"

extern "C" {
#include "portability/instr_time.h"
#include "utils/datum.h"
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
        local == NIL ? table_rows_create(context, {}) : scan_finish(scan_begin(query, local, context), 0, 0, &workers);

    if (nodes_await(call->nodes, element))
        return rows;
    nodes_end(call->nodes);
    call->nodes = NULL;
    table_rows_clear(rows);
    return NULL;
}

/* Takes the way that suits the query, and reports which. */
static TableRows *read_rows(TableCall *call, const TableQuery *query, MemoryContext context)
{
    PgkmScanReport *const report = &call->run.scan;
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
            return table_rows_create(context, {});
    }
    report->way = "direct";
    if (call->memory == TABLE_MEMORY_AUTO)
        call->kept_by = query->kept_by;
    return scan_finish(scan, table_bytes_in_memory(call, query, scan), call->streamed_bytes, &report->workers);
}

/* From now on the levels of categories are those that the rows are written with. Loaded rows may have others than a
 * model that the call is given. */
static void note_levels(TableCall *call)
{
    const Datum *const levels = call->rows->levels;

    for (int i = 0; levels != NULL && call->levels != NULL && i < call->n_features; ++i)
        if (levels[i] != (Datum)0 && !datumIsEqual(levels[i], call->levels[i], false, -1))
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("the loaded rows have other levels of column \"%s\" than the model",
                                   call->features[i].name),
                            errhint("Leave memory => 'loaded' out.")));
    if (levels != NULL)
        call->levels = levels;
}

/* Puts means in the place of NULLs. */
static void fill_missing(const TableCall *call, TableRows *rows)
{
    PgkmRows *const used = rows->used;
    int32 feature = 0;
    PgkmError error;

    if (used == NULL || used->n == 0 || used->element == PGKM_BIT) /* a bit string has no NULLs within */
        return;
    rows->fills = (double *)MemoryContextAlloc(rows->context, used->d * sizeof(double));
    if (pgkm_fill_missing(used->values, used->element, used->n, used->d, used->weighted ? used->weights : NULL,
                          rows->fills, &feature, pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error);
    if (feature == 0)
        return;
    if (!column_is_single(&call->features[0]))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("feature %d of column \"%s\" has no value to take the mean of", feature,
                               call->features[0].name)));
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("column \"%s\" has no value to take the mean of", table_feature_name(call, feature - 1))));
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

/* What the call asks for. */
static TableQuery query_of(const TableCall *call, const TableWish &wish)
{
    const bool has_categories = table_columns_have_categories(call->features, call->n_features);
    const bool has_bits = table_columns_are_bits(call->features, call->n_features);
    TableQuery query = {};

    (TableColumns &)query = *call;
    (TableWish &)query = wish;
    query.relation = &call->relation;
    /* Other servers read rows as they are. */
    query.on_nodes = wish.on_nodes && call->filter == NULL && call->nulls == TABLE_NULLS_ERROR && !has_categories &&
                     !has_bits && !table_columns_have_expressions(call);
    query.streamed = call->memory == TABLE_MEMORY_STREAM;
    if (query.may_stream && table_keeps_nulls(call->nulls)) {
        query.may_stream = false;
        query.kept_by = call->nulls == TABLE_NULLS_MEAN ? "nulls => 'mean'" : "nulls => 'em'";
    }
    if (query.may_stream && has_bits) {
        query.may_stream = false;
        query.kept_by = "features of bits";
    }
    if (query.may_stream && has_categories) {
        query.may_stream = false;
        query.kept_by = "features of text";
    }
    if (query.may_stream && call->filter != NULL && call->filter->expression != NULL &&
        call->filter->expression->is_volatile) {
        query.may_stream = false;
        query.kept_by = "a volatile filter";
    }
    /* Labels that are written by value need SQL that says which rows are skipped. */
    if (query.may_stream && call->nulls == TABLE_NULLS_SKIP && table_columns_have_expressions(call)) {
        query.may_stream = false;
        query.kept_by = "nulls => 'skip' beside expressions";
    }
    if (query.streamed)
        check_may_be_streamed(&query);
    return query;
}

static void read(TableCall *call, const TableQuery *query, MemoryContext context)
{
    PgkmScanReport *const report = &call->run.scan;
    ErrorContextCallback watch;
    instr_time start;
    instr_time duration;

    pgkm_progress_scan(0, 0);
    INSTR_TIME_SET_CURRENT(start);
    table_call_watch_errors(call, &watch);
    call->rows = read_rows(call, query, context);
    table_rows_shrink(call->rows);
    note_levels(call);
    if (call->nulls == TABLE_NULLS_MEAN && !call->keeps_missing)
        fill_missing(call, call->rows);
    error_context_stack = watch.previous;
    INSTR_TIME_SET_CURRENT(duration);
    INSTR_TIME_SUBTRACT(duration, start);
    if (call->stream == NULL)
        report->rows = call->rows->n;
    report->seconds = INSTR_TIME_GET_DOUBLE(duration);
}

static void take_loaded(TableCall *call, const TableWish &wish)
{
    call->run.scan.way = "loaded";
    call->rows = call->loaded->rows;
    call->nodes = call->loaded->nodes;
    note_levels(call);
    if (call->nodes != NULL && !wish.on_nodes)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("rows of relation \"%s\" are loaded on other servers", call->relation.name),
                        errdetail("Labels, mini-batches, and the first rows as centroids need all rows on this one."),
                        errhint("Set \"pg_kmeans.distributed\" to off and call kmeans_load again.")));
}

/* The rows of other servers take part; there may be none here. */
static void request_nodes(TableCall *call)
{
    const PgkmRows *const used = call->rows->used;
    PgkmRequest *const request = &call->request;

    request->nodes = nodes_list(call->nodes, &request->n_nodes);
    if (used == NULL)
        request->points = pgkm_no_points(table_columns_element(call->features, call->n_features),
                                         nodes_features(call->nodes), call->weight != NULL);
    else if (nodes_rows(call->nodes) > 0 && used->d != nodes_features(call->nodes))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("this server has rows of %d features, others have %d", used->d, nodes_features(call->nodes))));
}

static void complete_request(TableCall *call)
{
    PgkmRequest *const request = &call->request;
    const PgkmRows *const used = call->rows->used;

    request->may_lack_values = call->nulls == TABLE_NULLS_EM;
    if (used != NULL) {
        request->points = pgkm_rows_points(used);
        request->segment = used->segment;
    }
    if (call->stream != NULL) {
        request->points = call->stream->points;
        request->stream = call->stream->stream;
    }
    if (call->nodes != NULL)
        request_nodes(call);
    else if (call->loaded != NULL)
        request->resident = call->loaded->resident;
}

TableRows *table_call_read(TableCall *call, const char *function, const TableWish &wish, MemoryContext context)
{
    const TableQuery query = query_of(call, wish);

    pgkm_run_begin(&call->run, function, call->relation.id);
    if (call->loaded == NULL)
        read(call, &query, context == NULL ? call->context : context);
    else
        take_loaded(call, wish);
    call->fills = call->rows->fills;
    call->n = call->stream != NULL ? call->stream->n : table_rows_used(call->rows);
    if (call->nodes != NULL)
        call->n += nodes_rows(call->nodes);
    if (context == NULL && call->n > 0)
        complete_request(call);
    return call->rows;
}

void table_call_check_places(const TableCall *call)
{
    if (!call->rows->wants.ctid)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for table %s", call->relation.name),
                 errdetail("The rows were loaded without the right to read ctid.")));
    if (call->loaded != NULL)
        pgkm_loaded_check_places(call->loaded);
}
