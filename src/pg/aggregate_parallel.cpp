/*
 * aggregate_parallel.cpp - states of the aggregate kmeans between processes: merged,
 * written and read again.
 */
#include "pg/aggregate.h"

#include "pg/compat.h"

extern "C" {
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_aggregate_combine);
PG_FUNCTION_INFO_V1(pgkm_aggregate_serialize);
PG_FUNCTION_INFO_V1(pgkm_aggregate_deserialize);
}

/* Left free below the largest allocation for the tuple and message around a state. */
#define TUPLE_MARGIN 65536

/* The start of a written state; init_centroids, values and weights follow. Only processes of
 * one server read it, so it is the structs as they are. */
struct SerialHead {
    int64       k;
    PgkmOptions options; /* its pointer means nothing */
    PgkmElement element;
    int32       d;
    int64       n;
    bool        weighted;
};

static Size init_centroids_size(const PgkmOptions *options)
{
    return options->init == PGKM_INIT_GIVEN ? (Size) options->init_rows * options->init_columns * sizeof(double) : 0;
}

static AggregateState *copy_state(MemoryContext context, const AggregateState *from)
{
    AggregateState *const state = (AggregateState *) MemoryContextAllocZero(context, sizeof(AggregateState));
    const PgkmRows *const rows = from->rows;

    state->group.k = from->group.k;
    state->group.options = from->group.options;
    /* No row is ever added to a merged state by itself: nothing is left to compare. */
    state->group.constant_options = true;

    const Size size = init_centroids_size(&from->group.options);

    if (size != 0) {
        void *const copy = MemoryContextAllocHuge(context, size);

        memcpy(copy, from->group.options.init_centroids, size);
        state->group.options.init_centroids = (const double *) copy;
    }
    state->rows = pgkm_rows_create(context, rows->element, rows->d, rows->weighted);
    pgkm_rows_append(state->rows, rows->values, (const char *) rows->weights, rows->n);
    return state;
}

/*
 * kmeans_combine(a internal, b internal) -> internal
 *
 *   if b is NULL: return a
 *   if a is NULL: return a copy of b in the aggregate's context
 *   unless k, options and the rows' length are the same: ERROR
 *   append b's rows to a; return a
 */
Datum pgkm_aggregate_combine(PG_FUNCTION_ARGS)
{
    MemoryContext context;

    if (!AggCheckCallContext(fcinfo, &context))
        elog(ERROR, "aggregate support function called in non-aggregate context");

    AggregateState *const       a = PG_ARGISNULL(0) ? NULL : (AggregateState *) PG_GETARG_POINTER(0);
    const AggregateState *const b = PG_ARGISNULL(1) ? NULL : (const AggregateState *) PG_GETARG_POINTER(1);

    if (b == NULL) {
        if (a == NULL)
            PG_RETURN_NULL();
        PG_RETURN_POINTER(a);
    }
    if (a == NULL)
        PG_RETURN_POINTER(copy_state(context, b));

    pgkm_group_check_equal(&a->group, &b->group);
    if (a->rows->d != b->rows->d)
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
                        errmsg("expected %d features, not %d", a->rows->d, b->rows->d)));
    pgkm_rows_append(a->rows, b->rows->values, (const char *) b->rows->weights, b->rows->n);
    PG_RETURN_POINTER(a);
}

static void check_serial_size(double size)
{
    if (size > (double) (MaxAllocSize - TUPLE_MARGIN))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("rows collected by a parallel worker exceed the maximum size of a value"),
                        errhint("Set \"max_parallel_workers_per_gather\" to 0.")));
}

static char *put(char *place, const void *bytes, Size size)
{
    if (size != 0)
        memcpy(place, bytes, size);
    return place + size;
}

/* kmeans_serialize(state internal) -> bytea; 54000 from 1 GB on. */
Datum pgkm_aggregate_serialize(PG_FUNCTION_ARGS)
{
    const AggregateState *const state = (const AggregateState *) PG_GETARG_POINTER(0);
    const PgkmRows *const       rows = state->rows;
    const Size                  centroids = init_centroids_size(&state->group.options);
    const double per_row = (double) rows->row_bytes + (rows->weighted ? sizeof(double) : 0);

    check_serial_size((double) sizeof(SerialHead) + (double) centroids + per_row * (double) rows->n);

    const Size values = rows->n * rows->row_bytes;
    const Size weights = rows->weighted ? rows->n * sizeof(double) : 0;
    const Size size = VARHDRSZ + sizeof(SerialHead) + centroids + values + weights;
    bytea     *result = (bytea *) palloc(size);
    SerialHead head;

    memset(&head, 0, sizeof head);
    head.k = state->group.k;
    head.options = state->group.options;
    head.element = rows->element;
    head.d = rows->d;
    head.n = rows->n;
    head.weighted = rows->weighted;

    SET_VARSIZE(result, size);
    char *place = put(VARDATA(result), &head, sizeof head);

    place = put(place, state->group.options.init_centroids, centroids);
    place = put(place, rows->values, values);
    put(place, rows->weights, weights);
    PG_RETURN_BYTEA_P(result);
}

/*
 * kmeans_deserialize(bytes bytea, internal) -> internal: a state for kmeans_combine alone,
 * which copies what it keeps: the rows stay where they are, in `bytes`.
 */
Datum pgkm_aggregate_deserialize(PG_FUNCTION_ARGS)
{
    bytea *const          bytes = PG_GETARG_BYTEA_PP(0);
    char                 *place = VARDATA_ANY(bytes);
    AggregateState *const state = (AggregateState *) palloc0(sizeof(AggregateState));
    PgkmRows *const       rows = (PgkmRows *) palloc0(sizeof(PgkmRows));
    SerialHead            head;

    memcpy(&head, place, sizeof head);
    place += sizeof head;
    state->group.k = head.k;
    state->group.options = head.options;
    state->group.options.init_centroids = (const double *) place;
    place += init_centroids_size(&head.options);

    state->rows = rows;
    rows->element = head.element;
    rows->d = head.d;
    rows->n = head.n;
    rows->weighted = head.weighted;
    rows->row_bytes = (Size) head.d * pgkm_element_size(head.element);
    rows->values = place;
    rows->weights = head.weighted ? (double *) (place + rows->n * rows->row_bytes) : NULL;
    PG_RETURN_POINTER(state);
}
