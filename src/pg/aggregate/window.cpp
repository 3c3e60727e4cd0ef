/*
 * window.cpp - the window functions kmeans_label and gmm_label(features, k [, options]).
 *
 * The first row of a partition that asks makes the function read them all and cluster them;
 * the labels stay in the partition's memory for the rows that follow.
 */
#include "pg/compat.h"

#include "pg/aggregate/aggregate.h"
#include "pg/aggregate/group_name.h"
#include "pg/values/datum.h"
#include "pg/gmm/gmm.h"
#include "pg/kmeans/model.h"
#include "pg/run/fit_count.h"
#include "pg/rows/rows.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
#include "windowapi.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_label);
PG_FUNCTION_INFO_V1(pgkm_gmm_label);
}

enum LabelArgument { ARGUMENT_FEATURES, ARGUMENT_K, ARGUMENT_OPTIONS };

#define NO_LABEL (-1) /* of a NULL row */

/* Partition-local memory, zero at a partition's start. */
struct PartitionLabels {
    int32 *labels;   /* one per row */
    uint64 reserved; /* their bytes, counted against pg_kmeans.memory_limit */
    MemoryContextCallback on_reset;
};

/* What lives as long as the reading and clustering of one partition. */
struct PartitionFit {
    FmgrInfo *flinfo;
    WindowObject window;
    const FitKind *kind;
    MemoryContext context;
    bool constant[ARGUMENT_OPTIONS + 1];
    NullableDatum values[ARGUMENT_OPTIONS + 1]; /* the arguments in the current row */
    PgkmGroupArguments group;
    PgkmRows *rows; /* NULL until the first row that is not NULL */
    PgkmJobHolder *holder;
};

static NullableDatum argument_in_row(const PartitionFit *fit, int number, int64 row)
{
    NullableDatum value;
    bool is_out;

    value.value = WinGetFuncArgInPartition(fit->window, number, row, WINDOW_SEEK_HEAD, false, &value.isnull, &is_out);
    return value;
}

static void begin_rows(PartitionFit *fit, const PgkmVector *vector)
{
    pgkm_group_begin(&fit->group, fit->kind, fit->context, &fit->values[ARGUMENT_K], NULL,
                     &fit->values[ARGUMENT_OPTIONS], fit->constant[ARGUMENT_OPTIONS]);
    fit->rows = pgkm_rows_create(fit->context, pgkm_element_of(vector->element_type), vector->length, false);
    pgkm_group_expect(&fit->group, fit->rows, (double)WinGetPartitionRowCount(fit->window), fit->context);
}

/* Reads one row of the partition; false when its features are NULL, or all of them. */
static bool read_row(PartitionFit *fit, int64 row)
{
    PgkmVector vector;
    PgkmRowFault fault;

    if (!pgkm_open_row(fit->flinfo, ARGUMENT_FEATURES, argument_in_row(fit, ARGUMENT_FEATURES, row), &vector))
        return false;
    for (int i = ARGUMENT_K; i <= ARGUMENT_OPTIONS; ++i)
        if (!fit->constant[i])
            fit->values[i] = argument_in_row(fit, i, row);
    if (fit->rows == NULL)
        begin_rows(fit, &vector);
    else
        pgkm_group_check(&fit->group, &fit->values[ARGUMENT_K], NULL, &fit->values[ARGUMENT_OPTIONS]);
    if (!pgkm_rows_add(fit->rows, &vector, 1.0, &fault))
        pgkm_raise_row_fault(&fault, NULL);
    return true;
}

/* Reads all rows; labels[i] becomes 0 for a row that is clustered and NO_LABEL for others. */
static void read_partition(PartitionFit *fit, int32 *labels, int64 n)
{
    MemoryContext row_context = AllocSetContextCreate(fit->context, "kmeans_label row", ALLOCSET_SMALL_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(row_context);
    PgkmRowContext place;

    for (int64 i = 0; i < n; ++i) {
        CHECK_FOR_INTERRUPTS();
        MemoryContextReset(row_context);
        pgkm_row_context_begin(&place, NULL, i + 1);
        labels[i] = read_row(fit, i) ? 0 : NO_LABEL;
        pgkm_row_context_end(&place);
    }
    MemoryContextSwitchTo(caller);
}

/* Looks once at the arguments that are the same in all rows of the query. */
static void read_constant_arguments(PartitionFit *fit, FunctionCallInfo fcinfo)
{
    const int count = get_fn_expr_argtype(fcinfo->flinfo, ARGUMENT_OPTIONS) == InvalidOid ? 2 : 3;

    for (int i = ARGUMENT_K; i <= ARGUMENT_OPTIONS; ++i) {
        fit->constant[i] = i >= count || get_fn_expr_arg_stable(fcinfo->flinfo, i);
        fit->values[i] = {0, true};
        if (i < count && fit->constant[i])
            fit->values[i].value = WinGetFuncArgCurrent(fit->window, i, &fit->values[i].isnull);
    }
}

/* The warnings that were given, which fn_extra keeps: one of each is enough for a query. */
struct GivenWarnings {
    PgkmCallCache call;
    bool fewer;
    bool unfinished;
};

static void warn_once(FmgrInfo *flinfo, const PgkmRequest *request, const PgkmResult *result)
{
    PgkmFitCount count = {};
    PgkmFitCount fewer = {};

    GivenWarnings *const given = (GivenWarnings *)pgkm_call_cache(flinfo, sizeof(GivenWarnings));

    if (!given->fewer && (given->fewer = pgkm_count_fewer(&fewer, request->algorithm, result, request->k)))
        pgkm_warn_counted(&fewer);
    if (!given->unfinished && (given->unfinished = pgkm_count_fit(&count, request, result)))
        pgkm_warn_counted(&count);
}

/* Fits the rows that were read and gives them their labels. */
static void label_partition(FunctionCallInfo fcinfo, PartitionFit *fit, int32 *labels, int64 n)
{
    PgkmRequest request;

    pgkm_group_request(&fit->group, fit->rows, &request);
    request.want_labels = 1;
    if (request.algorithm == PGKM_MIXTURE)
        pgkm_gmm_check_size(&request, request.k, request.points.n);

    const char *const function = request.algorithm == PGKM_MIXTURE ? "gmm_label" : "kmeans_label";
    const PgkmResult *const result = pgkm_aggregate_run(function, &request, fit->context, &fit->holder);

    warn_once(fcinfo->flinfo, &request, result);
    for (int64 i = 0, used = 0; i < n; ++i)
        if (labels[i] != NO_LABEL)
            labels[i] = result->labels[used++];
}

/* The partition's memory goes by itself; the account has to be told. */
static void release_labels(void *partition_labels)
{
    PartitionLabels *const local = (PartitionLabels *)partition_labels;

    pgkm_memory_hold(&local->reserved, -(int64)local->reserved);
}

static int32 *allocate_labels(PartitionLabels *local, MemoryContext partition, int64 n)
{
    const uint64 bytes = (uint64)n * sizeof(int32);

    pgkm_memory_hold(&local->reserved, bytes);
    local->on_reset.func = release_labels;
    local->on_reset.arg = local;
    MemoryContextRegisterResetCallback(partition, &local->on_reset);
    return (int32 *)MemoryContextAllocHuge(partition, bytes);
}

static void fit_partition(FunctionCallInfo fcinfo, const FitKind *kind, PartitionLabels *local)
{
    const WindowObject window = PG_WINDOW_OBJECT();
    const MemoryContext partition = GetMemoryChunkContext(local);
    const int64 n = WinGetPartitionRowCount(window);
    int32 *const labels = allocate_labels(local, partition, n);
    PartitionFit fit;

    memset(&fit, 0, sizeof fit);
    (void)pgkm_call_cache(fcinfo->flinfo, sizeof(GivenWarnings));
    fit.flinfo = fcinfo->flinfo;
    fit.window = window;
    fit.kind = kind;
    fit.context = AllocSetContextCreate(partition, "kmeans_label", ALLOCSET_DEFAULT_SIZES);
    read_constant_arguments(&fit, fcinfo);
    read_partition(&fit, labels, n);
    if (fit.rows != NULL)
        label_partition(fcinfo, &fit, labels, n);
    MemoryContextDelete(fit.context); /* the job, its result and the rows go with it */
    local->labels = labels;
}

static Datum label_row(FunctionCallInfo fcinfo, const FitKind *kind)
{
    const WindowObject window = PG_WINDOW_OBJECT();
    PartitionLabels *const local = (PartitionLabels *)WinGetPartitionLocalMemory(window, sizeof(PartitionLabels));

    if (local->labels == NULL)
        fit_partition(fcinfo, kind, local);

    const int32 label = local->labels[WinGetCurrentPosition(window)];

    if (label == NO_LABEL)
        PG_RETURN_NULL();
    PG_RETURN_INT32(label);
}

/*
 * kmeans_label(features, k [, options]) -> integer: the row's cluster in a fit of its
 * partition; NULL for NULL features. Errors as of the aggregate kmeans.
 */
Datum pgkm_kmeans_label(PG_FUNCTION_ARGS)
{
    return label_row(fcinfo, &kmeans_kind);
}

/* gmm_label(features, k [, options]) -> integer: likewise the component of a mixture. */
Datum pgkm_gmm_label(PG_FUNCTION_ARGS)
{
    return label_row(fcinfo, &gmm_kind);
}
