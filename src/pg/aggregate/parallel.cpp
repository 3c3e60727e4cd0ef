/*
 * parallel.cpp - states of the aggregates kmeans and gmm between processes: merged,
 * written and read again.
 */
#include "pg/aggregate/aggregate.h"

#include "pg/aggregate/batch.h"
#include "pg/compat.h"
#include "pg/rows/image.h"
#include "pg/service/session.h"

extern "C" {
#include "storage/shmem.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_aggregate_combine);
PG_FUNCTION_INFO_V1(pgkm_aggregate_serialize);
PG_FUNCTION_INFO_V1(pgkm_aggregate_deserialize);
}

/* Raise it when the head or the image of the rows changes. */
#define SERIAL_VERSION 1
#define SERIAL_MAGIC 0x706b6d73

/* The start of a written state; the options' arrays and the image of the rows follow. The servers of
 * one build read it, so it is the structs as they are. */
struct SerialHead {
    uint32 magic; /* of another byte order it is another one */
    uint16 version;
    uint16 head_size;
    uint64 size; /* of the whole */
    int64 k;
    int32 is_mixture; /* 0 or 1 */
    int32 unused;
    PgkmAnyOptions options; /* its pointers are NULL */
};

/* What the deserialization function makes, for the combine function alone. */
struct IncomingState {
    AggregateState state; /* first: the combine function is given this */
    PgkmIncomingRows rows;
};

/* Some processes find more rows than others. */
#define PART_SLACK 2

/* Parts of many rows are about the same size from all processes: memory for all of them at once spares
 * the buffer its growth, and its first touch is cheaper in large pages. Where there is a GPU service,
 * rows that it can map need not be copied once more. Parts in segments are taken over as they are. */
static void expect_parts(PgkmRows *rows, const PgkmIncomingRows *part)
{
    const int64 n = part->rows.n;

    if (n * rows->row_bytes < PGKM_LARGE_PART_BYTES || (part->n_slices > 0 && part->last))
        return;

    const bool share = !rows->weighted && pgkm_service_runs() &&
                       pgkm_fits_shared_memory((double)n * part->processes * rows->row_bytes * PART_SLACK);

    if (!share || !pgkm_rows_share(rows))
        pgkm_rows_expect(rows, n * part->processes);
}

/* Without rows yet. */
static AggregateState *copy_state(MemoryContext context, const AggregateState *from, const PgkmIncomingRows *part)
{
    AggregateState *const state = (AggregateState *)MemoryContextAllocZero(context, sizeof(AggregateState));
    const PgkmRows *const rows = from->rows;

    const PgkmOptionsType *const type = from->group.type;

    state->group.type = type;
    state->group.k = from->group.k;
    state->group.options = from->group.options;
    /* No row is ever added to a merged state by itself: nothing is left to compare. */
    state->group.constant_options = true;

    const Size size = pgkm_options_arrays_size(type, &from->group.options);

    if (size != 0) {
        char *const copy = (char *)MemoryContextAllocHuge(context, size);

        pgkm_options_write_arrays(type, &from->group.options, copy);
        pgkm_options_attach_arrays(type, &state->group.options, copy);
    }
    state->rows = pgkm_rows_create(context, rows->element, rows->d, rows->weighted);
    expect_parts(state->rows, part);
    return state;
}

/* Those of one aggregate differ in their length at most. */
static void check_same_rows(const AggregateState *left, const AggregateState *right)
{
    const PgkmRows *const a = left->rows;
    const PgkmRows *const b = right->rows;

    if (left->group.type != right->group.type || a->element != b->element || a->weighted != b->weighted)
        pgkm_raise_state("It belongs to another aggregate than the states before.");
    if (a->d != b->d)
        ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("expected %d features, not %d", a->d, b->d)));
}

/*
 * pgkm_combine(a internal, b internal) -> internal
 *
 *   if b is NULL: return a
 *   if a is NULL: return a copy of b in the aggregate's context
 *   unless k, options and the rows' length are the same: ERROR
 *   append b's rows to a; return a
 *
 * b is always one that pgkm_deserialize made: the executor combines no other states of
 * an aggregate that has a serialization function.
 */
Datum pgkm_aggregate_combine(PG_FUNCTION_ARGS)
{
    const MemoryContext context = pgkm_aggregate_context(fcinfo);
    AggregateState *a = PG_ARGISNULL(0) ? NULL : (AggregateState *)PG_GETARG_POINTER(0);
    IncomingState *const b = PG_ARGISNULL(1) ? NULL : (IncomingState *)PG_GETARG_POINTER(1);

    if (b == NULL) {
        if (a == NULL)
            PG_RETURN_NULL();
        PG_RETURN_POINTER(a);
    }
    if (a == NULL) {
        a = copy_state(context, &b->state, &b->rows);
        pgkm_batch_enlist(fcinfo, context, a);
    } else {
        check_same_rows(a, &b->state);
        pgkm_group_check_equal(&a->group, &b->state.group);
    }
    pgkm_rows_append_incoming(a->rows, &b->rows);
    PG_RETURN_POINTER(a);
}

/* pgkm_serialize(state internal) -> bytea: the rows or, if they are many, where they are. */
Datum pgkm_aggregate_serialize(PG_FUNCTION_ARGS)
{
    const AggregateState *const state = (const AggregateState *)PG_GETARG_POINTER(0);
    const PgkmOptionsType *const type = state->group.type;
    const Size arrays = pgkm_options_arrays_size(type, &state->group.options);
    PgkmRowsImage image;
    const Size rows = pgkm_rows_image_prepare(state->rows, fcinfo, &image);
    const Size size = VARHDRSZ + sizeof(SerialHead) + add_size(arrays, rows);
    bytea *const result = (bytea *)palloc(size);
    SerialHead head;

    memset(&head, 0, sizeof head);
    head.magic = SERIAL_MAGIC;
    head.version = SERIAL_VERSION;
    head.head_size = sizeof head;
    head.size = size - VARHDRSZ;
    head.k = state->group.k;
    head.is_mixture = type == &pgkm_mixture_options_type;
    head.options = state->group.options;
    pgkm_options_attach_arrays(type, &head.options, NULL);

    SET_VARSIZE(result, size);
    char *place = VARDATA(result);

    memcpy(place, &head, sizeof head);
    place += sizeof head;
    pgkm_options_write_arrays(type, &state->group.options, place);
    pgkm_rows_image_write(state->rows, &image, place + arrays);
    PG_RETURN_BYTEA_P(result);
}

static void read_head(const char *place, Size size, SerialHead *head)
{
    if (size < sizeof *head)
        pgkm_raise_state("It is too short.");
    memcpy(head, place, sizeof *head);
    if (head->magic != SERIAL_MAGIC || head->version != SERIAL_VERSION || head->head_size != sizeof *head)
        pgkm_raise_state("It was not written by this version of pg_kmeans.");
    if (head->size != size)
        pgkm_raise_state("Its length is not the one that was written.");
    if (head->k < 1 || head->k > PG_INT32_MAX || (head->is_mixture != 0 && head->is_mixture != 1))
        pgkm_raise_state("A number is out of its range.");
}

/* The options and their arrays, of which a copy is made: in the bytes nothing is aligned. Returns how
 * many of the bytes at `place` they take. */
static Size read_options(const SerialHead *head, const char *place, Size size, PgkmGroupArguments *group)
{
    group->type = head->is_mixture != 0 ? &pgkm_mixture_options_type : &pgkm_kmeans_options_type;
    group->k = head->k;
    group->options = head->options;

    const Size bytes = pgkm_options_arrays_size(group->type, &group->options);
    char *arrays = NULL;

    if (bytes > size)
        pgkm_raise_state("Its length does not match its options.");
    if (bytes > 0) {
        arrays = (char *)palloc(bytes);
        memcpy(arrays, place, bytes);
    }
    pgkm_options_attach_arrays(group->type, &group->options, arrays);
    if (!pgkm_options_are_valid(group->type, &group->options))
        pgkm_raise_state("An option is out of its range.");
    return bytes;
}

/*
 * pgkm_deserialize(bytes bytea, internal) -> internal: a state for pgkm_combine alone,
 * which copies what it keeps: the rows stay where they are, in `bytes` or in shared memory.
 * 22P03 for any bytes that no state was written as.
 */
Datum pgkm_aggregate_deserialize(PG_FUNCTION_ARGS)
{
    bytea *const bytes = PG_GETARG_BYTEA_PP(0);
    const char *place = VARDATA_ANY(bytes);
    Size size = VARSIZE_ANY_EXHDR(bytes);
    IncomingState *const incoming = (IncomingState *)palloc0(sizeof(IncomingState));
    SerialHead head;

    read_head(place, size, &head);
    place += sizeof head;
    size -= sizeof head;

    const Size arrays = read_options(&head, place, size, &incoming->state.group);

    pgkm_rows_image_read(place + arrays, size - arrays, fcinfo, &incoming->rows);
    incoming->state.rows = &incoming->rows.rows;
    if (head.is_mixture != 0 && incoming->rows.rows.weighted)
        pgkm_raise_state("Rows of a mixture have no weights.");
    PG_RETURN_POINTER(incoming);
}
