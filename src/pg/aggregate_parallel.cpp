/*
 * aggregate_parallel.cpp - states of the aggregates kmeans and gmm between processes: merged,
 * written and read again.
 */
#include "pg/aggregate.h"

#include "pg/aggregate_batch.h"
#include "pg/compat.h"
#include "pg/rows_image.h"
#include "pg/service_session.h"

extern "C" {
#include "storage/shmem.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_aggregate_combine);
PG_FUNCTION_INFO_V1(pgkm_aggregate_serialize);
PG_FUNCTION_INFO_V1(pgkm_aggregate_deserialize);
}

/* The start of a written state; the options' arrays and the image of the rows follow. Only
 * processes of one server read it, so it is the structs as they are. */
struct SerialHead {
    bool           is_mixture;
    int64          k;
    PgkmAnyOptions options; /* its pointers mean nothing */
};

/* What the deserialization function makes, for the combine function alone. */
struct IncomingState {
    AggregateState state; /* first: the combine function is given this */
    PgkmRowsView   view;
};

/* Some processes find more rows than others. */
#define PART_SLACK 2

/* Parts of many rows are about the same size from all processes: memory for all of them at once spares
 * the buffer its growth, and its first touch is cheaper in large pages. Where there is a GPU service,
 * rows that it can map need not be copied once more. Parts in segments are taken over as they are. */
static void expect_parts(PgkmRows *rows, const PgkmRowsView *part)
{
    const int64 n = part->rows.n;

    if (n * rows->row_bytes < PGKM_LARGE_PART_BYTES || (part->n_slices > 0 && part->last))
        return;

    const bool share = !rows->weighted && pgkm_service_runs() &&
                       pgkm_fits_shared_memory((double) n * part->processes * rows->row_bytes * PART_SLACK);

    if (!share || !pgkm_rows_share(rows))
        pgkm_rows_expect(rows, n * part->processes);
}

/* Without rows yet. */
static AggregateState *copy_state(MemoryContext context, const AggregateState *from, const PgkmRowsView *part)
{
    AggregateState *const state = (AggregateState *) MemoryContextAllocZero(context, sizeof(AggregateState));
    const PgkmRows *const rows = from->rows;

    const PgkmOptionsKind *const kind = from->group.kind;

    state->group.kind = kind;
    state->group.k = from->group.k;
    state->group.options = from->group.options;
    /* No row is ever added to a merged state by itself: nothing is left to compare. */
    state->group.constant_options = true;

    const Size size = kind->write_arrays(&from->group.options, NULL);

    if (size != 0) {
        char *const copy = (char *) MemoryContextAllocHuge(context, size);

        kind->write_arrays(&from->group.options, copy);
        kind->attach_arrays(&state->group.options, copy);
    }
    state->rows = pgkm_rows_create(context, rows->element, rows->d, rows->weighted);
    expect_parts(state->rows, part);
    return state;
}

static void check_same_length(const PgkmRows *a, const PgkmRows *b)
{
    if (a->d != b->d)
        ereport(ERROR,
                (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("expected %d features, not %d", a->d, b->d)));
}

/*
 * kmeans_combine(a internal, b internal) -> internal
 *
 *   if b is NULL: return a
 *   if a is NULL: return a copy of b in the aggregate's context
 *   unless k, options and the rows' length are the same: ERROR
 *   append b's rows to a; return a
 *
 * b is always one that kmeans_deserialize made: the executor combines no other states of
 * an aggregate that has a serialization function.
 */
Datum pgkm_aggregate_combine(PG_FUNCTION_ARGS)
{
    MemoryContext context;

    if (!AggCheckCallContext(fcinfo, &context))
        elog(ERROR, "aggregate support function called in non-aggregate context");

    AggregateState      *a = PG_ARGISNULL(0) ? NULL : (AggregateState *) PG_GETARG_POINTER(0);
    IncomingState *const b = PG_ARGISNULL(1) ? NULL : (IncomingState *) PG_GETARG_POINTER(1);

    if (b == NULL) {
        if (a == NULL)
            PG_RETURN_NULL();
        PG_RETURN_POINTER(a);
    }
    if (a == NULL) {
        a = copy_state(context, &b->state, &b->view);
        pgkm_batch_enlist(fcinfo, context, a);
    } else {
        pgkm_group_check_equal(&a->group, &b->state.group);
        check_same_length(a->rows, b->state.rows);
    }
    pgkm_rows_view_append(a->rows, &b->view);
    PG_RETURN_POINTER(a);
}

/* kmeans_serialize(state internal) -> bytea: the rows or, if they are many, where they are. */
Datum pgkm_aggregate_serialize(PG_FUNCTION_ARGS)
{
    const AggregateState *const state = (const AggregateState *) PG_GETARG_POINTER(0);
    const PgkmOptionsKind      *kind = state->group.kind;
    const Size                  arrays = kind->write_arrays(&state->group.options, NULL);
    PgkmRowsImage               image;
    const Size                  rows = pgkm_rows_image_prepare(state->rows, fcinfo, &image);
    const Size                  size = VARHDRSZ + sizeof(SerialHead) + add_size(arrays, rows);
    bytea *const                result = (bytea *) palloc(size);
    SerialHead                  head;

    memset(&head, 0, sizeof head);
    head.is_mixture = kind == &pgkm_mixture_options_kind;
    head.k = state->group.k;
    head.options = state->group.options;

    SET_VARSIZE(result, size);
    char *place = VARDATA(result);

    memcpy(place, &head, sizeof head);
    place += sizeof head;
    kind->write_arrays(&state->group.options, place);
    pgkm_rows_image_write(state->rows, &image, place + arrays);
    PG_RETURN_BYTEA_P(result);
}

/*
 * kmeans_deserialize(bytes bytea, internal) -> internal: a state for kmeans_combine alone,
 * which copies what it keeps: the rows stay where they are, in `bytes` or in shared memory.
 */
Datum pgkm_aggregate_deserialize(PG_FUNCTION_ARGS)
{
    bytea *const         bytes = PG_GETARG_BYTEA_PP(0);
    char                *place = VARDATA_ANY(bytes);
    IncomingState *const incoming = (IncomingState *) palloc0(sizeof(IncomingState));
    PgkmGroupArguments  *group = &incoming->state.group;
    SerialHead           head;

    memcpy(&head, place, sizeof head);
    place += sizeof head;
    group->kind = head.is_mixture ? &pgkm_mixture_options_kind : &pgkm_kmeans_options_kind;
    group->k = head.k;
    group->options = head.options;
    group->kind->attach_arrays(&group->options, place);
    pgkm_rows_image_view(place + group->kind->write_arrays(&group->options, NULL), fcinfo, &incoming->view);
    incoming->state.rows = &incoming->view.rows;
    PG_RETURN_POINTER(incoming);
}
