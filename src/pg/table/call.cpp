/*
 * call.cpp - arguments and fits of the table functions.
 */
#include "pg/table/call.h"

#include "pg/nodes/nodes.h"
#include "pg/run/fit_count.h"
#include "pg/settings.h"
#include "pg/table/loaded.h"
#include "pg/table/stream.h"
#include "pg/values/datum.h"
#include "pg/values/options.h"

extern "C" {
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

Oid table_call_relation(FunctionCallInfo fcinfo)
{
    return DatumGetObjectId(pgkm_required(&fcinfo->args[TABLE_RELATION], "relation"));
}

TableArguments table_arguments(FunctionCallInfo fcinfo, int first)
{
    const NullableDatum *const given = fcinfo->args + first;

    return {.relation = table_call_relation(fcinfo),
            .features = fcinfo->args[TABLE_FEATURES],
            .options = given[0],
            .weight = given[1],
            .nulls = given[2],
            .filter = given[3],
            .memory = given[4],
            .next = first + 5};
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
    {"error", TABLE_NULLS_ERROR}, {"skip", TABLE_NULLS_SKIP}, {"mean", TABLE_NULLS_MEAN}, {"em", TABLE_NULLS_EM}};
static const PgkmWords all_nulls = {nulls_words, lengthof(nulls_words), "'error', 'skip', 'mean' or, of mixtures, 'em'",
                                    "It says what becomes of a row that has a NULL beside other values."};

const char *table_nulls_name(TableNulls nulls)
{
    return pgkm_word_of(&all_nulls, nulls);
}

/* The columns that are for something else than features. */
static List *columns_of_others(const TableArguments *given)
{
    List *names = given->label == NULL ? NIL : list_make1(makeString(pstrdup(given->label)));

    for (const NullableDatum *const other : {&given->weight, &given->filter})
        if (!other->isnull)
            names = lappend(names, makeString(TextDatumGetCString(other->value)));
    return names;
}

void table_call_find_columns(TableCall *call)
{
    const TableArguments *const given = &call->arguments;
    const Datum names = pgkm_required(&given->features, "features");

    table_features_find(call, &call->relation, DatumGetArrayTypeP(names), columns_of_others(given));
    if (table_columns_are_bits(call->features, call->n_features) && !call->takes_bits)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("the bits of \"%s\" cannot be features here", call->features[0].name),
                        errhint("kmeans_fit, kmeans_labels and kmeans_cluster take them with options => "
                                "kmeans_options(metric => 'hamming').")));
    table_call_check_model(call);
    call->weight = NULL;
    if (!given->weight.isnull)
        call->weight = table_column_find(&call->relation, TABLE_WEIGHT, TextDatumGetCString(given->weight.value));
    call->nulls = (TableNulls)pgkm_word_argument(&given->nulls, "nulls", &all_nulls, TABLE_NULLS_ERROR);
    call->takes_nulls = true;
    if (call->nulls == TABLE_NULLS_EM && call->request.algorithm != PGKM_MIXTURE)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("nulls => 'em' is for mixtures"),
                        errhint("gmm_fit, gmm_labels, gmm_cluster and gmm_sweep take it. Use nulls => 'mean' or "
                                "'skip' here.")));
    if (!given->filter.isnull)
        table_filter_find(call, &call->relation, TextDatumGetCString(given->filter.value));
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

const TableColumn *table_call_find_label(TableCall *call, TableUse use, const char *name)
{
    if (call->memory == TABLE_MEMORY_LOADED)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("loaded rows have no label_column")));
    table_call_find(call, use);
    return table_column_find(&call->relation, TABLE_LABEL, name);
}

void table_call_keep_rows(TableCall *call)
{
    if (call->nodes == NULL && call->loaded == NULL)
        call->request.resident = pgkm_run_keep_rows(call->context);
}

/* For an error about memory: what keeps the rows there. */
static void tell_option(void *of)
{
    const TableCall *const call = (const TableCall *)of;

    if (call->kept_by != NULL && geterrcode() == ERRCODE_PROGRAM_LIMIT_EXCEEDED)
        errhint("Raise \"%s\", which is %llu kB, or do without %s: then rows can be streamed.",
                pgkm_memory_limit_name(), (unsigned long long)(pgkm_memory_limit() / 1024), call->kept_by);
}

void table_call_watch_errors(TableCall *call, ErrorContextCallback *watch)
{
    watch->callback = tell_option;
    watch->arg = call;
    watch->previous = error_context_stack;
    error_context_stack = watch;
}

/* Of a sweep every fit counts, and the k of those that found less is seen in its rows. Of a tree k are leaves. */
static void warn_of_fits(const TableCall *call, const PgkmResult *first)
{
    const PgkmRequest *const request = &call->request;
    PgkmFitCount count = {};
    PgkmResult result = *first;

    if (request->algorithm == PGKM_PCA || request->algorithm == PGKM_REDUCTION || request->algorithm == PGKM_JUDGEMENT)
        return;
    pgkm_count_fit(&count, request, &result);
    if (request->k_last == 0 && request->algorithm != PGKM_TREE)
        pgkm_count_fewer(&count, request->algorithm, first, request->k);
    for (int64 i = 1; i < (request->k_last == 0 ? 1 : pgkm_sweep_count(request)); ++i) {
        pgkm_result_of(call->job, i, &result);
        pgkm_count_fit(&count, request, &result);
    }
    pgkm_warn_counted(&count);
}

const PgkmResult *table_call_fit(TableCall *call)
{
    const PgkmMeanwhile meanwhile = call->stream == NULL ? PgkmMeanwhile{NULL, NULL, 0} : call->stream->meanwhile;

    if (call->streamed_bytes > 0 && pgkm_lacks_memory(&call->request))
        pgkm_raise_streamed_memory(call->streamed_bytes);

    ErrorContextCallback watch;

    table_call_watch_errors(call, &watch);

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
    if (call->own_snapshot)
        PopActiveSnapshot();
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
