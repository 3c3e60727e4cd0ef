/*
 * parallel.cpp - states of the aggregates kmeans, kmeans_auto and gmm between processes: merged,
 * written and read again.
 */
#include "pg/aggregate/aggregate.h"

#include <cfloat>

#include "pg/aggregate/batch.h"
#include "pg/gmm/gmm.h"
#include "pg/kmeans/model.h"

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(pgkm_aggregate_combine);
PG_FUNCTION_INFO_V1(pgkm_aggregate_serialize);
PG_FUNCTION_INFO_V1(pgkm_aggregate_deserialize);
}

/* Raise it when the head or what follows it changes. */
#define SERIAL_VERSION 4
#define SERIAL_MAGIC 0x706b6d73

/* Fewer bytes of rows are copied faster than they are left in shared memory. */
#define LEAST_SHARED_BYTES 16384

/* For so many bytes of rows from one process, memory is taken for those from all processes. */
#define LARGE_PART_BYTES ((Size)1024 * 1024)

/* Bytes left for the tuple and message around a state, below the largest allocation. */
#define TUPLE_MARGIN 65536

/* The start of a written state. The options, n x d values and n weights follow, where they lie close together. The
 * servers of one build read it, so it is the structs as they are; the options are in the binary form of their type. */
struct SerialHead {
    uint32 magic; /* of another byte order it is another one */
    uint16 version;
    uint16 head_size;
    uint64 size; /* of the whole */
    int64 k;
    int32 is_mixture; /* 0 or 1 */
    int32 element;    /* a PgkmElement */
    int32 d;
    int32 weighted; /* 0 or 1 */
    int64 n;        /* rows that follow */
    SharedRows shared;
    int64 options_bytes; /* 0: they are NULL */
    int64 k_last;
};

/* What the deserialization function makes, for the combine function alone: `rows` are not to be grown or cleared. */
struct IncomingState {
    AggregateState state; /* first: the combine function is given this */
    PgkmRows rows;
    int processes; /* that leave rows in the same way */
    bool last;     /* nobody will ask for the shared rows again */
};

void pgkm_raise_state(const char *detail)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("invalid binary form of a state of kmeans or gmm"), errdetail("%s", detail)));
    pg_unreachable();
}

/* --- merging --- */

/* Without rows yet. No row is ever added to a merged state by itself: its options need not be compared. */
static AggregateState *copy_state(MemoryContext context, const AggregateState *from)
{
    AggregateState *const state = (AggregateState *)MemoryContextAllocZero(context, sizeof(AggregateState));
    const NullableDatum k = {Int64GetDatum(from->group.k), false};
    const NullableDatum k_max = {Int64GetDatum(from->group.k_last), false};

    pgkm_group_begin(&state->group, from->group.kind, context, &k, from->group.k_last != 0 ? &k_max : NULL,
                     &from->group.given, false);
    state->rows = pgkm_rows_create(context, from->rows->element, from->rows->d, from->rows->weighted);
    return state;
}

/* Parts of many rows are about the same size from all processes: memory for all of them at once spares the buffer its
 * growth, and its first touch is cheaper in large pages. */
static void append_rows(AggregateState *to, const IncomingState *from)
{
    const PgkmRows *const rows = &from->rows;
    const int64 n = rows->n + from->state.shared.n;

    if (to->rows->n == 0 && n * rows->row_bytes >= LARGE_PART_BYTES)
        pgkm_rows_expect(to->rows, n * from->processes);
    shared_rows_append(&from->state.shared, from->state.area, from->last, to->rows);
    pgkm_rows_append(to->rows, rows->values, (const char *)rows->weights, rows->n);
}

/* Those of one aggregate differ in their length at most. */
static void check_same_rows(const AggregateState *left, const AggregateState *right)
{
    const PgkmRows *const a = left->rows;
    const PgkmRows *const b = right->rows;

    if (left->group.kind != right->group.kind || a->element != b->element || a->weighted != b->weighted)
        pgkm_raise_state("It belongs to another aggregate than the states before.");
    pgkm_check_length(a->d, b->d);
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
        a = copy_state(context, &b->state);
        pgkm_batch_enlist(fcinfo, context, a);
    } else {
        check_same_rows(a, &b->state);
        pgkm_group_check_equal(&a->group, &b->state.group);
    }
    append_rows(a, b);
    PG_RETURN_POINTER(a);
}

/* --- writing --- */

/* Bytes of the values of all rows, and of their weights. */
static Size values_bytes(const PgkmRows *rows)
{
    return rows->n * rows->row_bytes;
}

static Size weights_bytes(const PgkmRows *rows)
{
    return rows->weighted ? rows->n * sizeof(double) : 0;
}

/* Many rows are left in the query's area where it has room for them. */
static Size rows_to_write(AggregateState *state)
{
    const double bytes = (double)values_bytes(state->rows) + (double)weights_bytes(state->rows);

    if (state->area != NULL && bytes >= LEAST_SHARED_BYTES)
        (void)shared_rows_leave(&state->shared, state->area, state->rows);
    if (state->rows->n > 0 && bytes > (double)(MaxAllocSize - TUPLE_MARGIN))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("rows collected by a parallel worker exceed the maximum size of a value"),
                        errhint("Provide more shared memory, or set \"max_parallel_workers_per_gather\" to 0.")));
    return values_bytes(state->rows) + weights_bytes(state->rows);
}

/* pgkm_serialize(state internal) -> bytea: the rows or, if they are many, where they are. */
Datum pgkm_aggregate_serialize(PG_FUNCTION_ARGS)
{
    AggregateState *const state = (AggregateState *)PG_GETARG_POINTER(0);
    const NullableDatum *const given = &state->group.given;
    const bytea *const options = given->isnull ? NULL : DatumGetByteaPP(OidFunctionCall1(F_RECORD_SEND, given->value));
    const Size options_bytes = options == NULL ? 0 : VARSIZE_ANY_EXHDR(options);
    const Size size = add_size(VARHDRSZ + sizeof(SerialHead) + rows_to_write(state), options_bytes);
    const PgkmRows *const rows = state->rows;
    bytea *const result = (bytea *)palloc(size);
    char *place = VARDATA(result);
    SerialHead head;

    memset(&head, 0, sizeof head);
    head.magic = SERIAL_MAGIC;
    head.version = SERIAL_VERSION;
    head.head_size = sizeof head;
    head.size = size - VARHDRSZ;
    head.k = state->group.k;
    head.k_last = state->group.k_last;
    head.is_mixture = state->group.kind == &gmm_kind;
    head.element = rows->element;
    head.d = rows->d;
    head.weighted = rows->weighted;
    head.n = rows->n;
    head.shared = state->shared;
    head.options_bytes = options_bytes;

    SET_VARSIZE(result, size);
    memcpy(place, &head, sizeof head);
    place += sizeof head;
    if (options_bytes > 0)
        memcpy(place, VARDATA_ANY(options), options_bytes);
    place += options_bytes;
    if (rows->n > 0)
        memcpy(place, rows->values, values_bytes(rows));
    if (rows->n > 0 && rows->weighted)
        memcpy(place + values_bytes(rows), rows->weights, weights_bytes(rows));
    PG_RETURN_BYTEA_P(result);
}

/* --- reading --- */

static void read_head(const char *place, Size size, SerialHead *head)
{
    if (size < sizeof *head)
        pgkm_raise_state("It is too short.");
    memcpy(head, place, sizeof *head);
    if (head->magic != SERIAL_MAGIC || head->version != SERIAL_VERSION || head->head_size != sizeof *head)
        pgkm_raise_state("It was not written by this version of pg_kmeans.");
    if (head->size != size)
        pgkm_raise_state("Its length is not the one that was written.");
    if (head->k < 1 || head->k > PG_INT32_MAX || (head->k_last != 0 && head->k_last < head->k) ||
        head->k_last > PG_INT32_MAX || (head->k_last != 0 && head->is_mixture != 0) ||
        (head->is_mixture != 0 && head->is_mixture != 1) || (head->weighted != 0 && head->weighted != 1) ||
        head->element < PGKM_FLOAT32 || head->element > PGKM_BIT || head->d < 1 || head->n < 0 ||
        head->options_bytes < 0 || head->shared.n < 0 || head->n > PG_INT64_MAX / 2 ||
        head->shared.n > PG_INT64_MAX / 2 || head->n + head->shared.n < 1 ||
        DsaPointerIsValid(head->shared.block) != (head->shared.n > 0))
        pgkm_raise_state("A number is out of its range.");
}

/* The options, which are of the type of that name beside the deserialization function. Returns how many of the bytes at
 * `place` they take. */
static Size read_options(FunctionCallInfo fcinfo, const SerialHead *head, const char *place, Size size,
                         PgkmGroupArguments *group)
{
    const FitKind *const kind = head->is_mixture != 0 ? &gmm_kind : &kmeans_kind;
    const Size bytes = (Size)head->options_bytes;
    const NullableDatum k = {Int64GetDatum(head->k), false};
    const NullableDatum k_max = {Int64GetDatum(head->k_last), false};
    NullableDatum options = {0, true};
    StringInfoData message;

    if (bytes > size)
        pgkm_raise_state("Its length does not match its options.");
    if (bytes > 0) {
        const Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(kind->options->composite.name),
                                         ObjectIdGetDatum(get_func_namespace(fcinfo->flinfo->fn_oid)));

        if (!OidIsValid(type))
            pgkm_raise_state("Its options are of no type.");
        initStringInfo(&message);
        appendBinaryStringInfo(&message, place, (int)bytes);
        options = {
            OidFunctionCall3(F_RECORD_RECV, PointerGetDatum(&message), ObjectIdGetDatum(type), Int32GetDatum(-1)),
            false};
        if (message.cursor != message.len)
            pgkm_raise_state("Its length does not match its options.");
    }
    pgkm_group_begin(group, kind, CurrentMemoryContext, &k, head->k_last != 0 ? &k_max : NULL, &options, true);
    return bytes;
}

/* From unaligned memory; false for NaN, too. */
template <typename T>
static bool all_within(const char *values, Size count, T least, T most)
{
    bool all = true;

    for (Size i = 0; i < count; ++i) {
        T value;

        memcpy(&value, values + i * sizeof(T), sizeof(T));
        all &= value >= least && value <= most;
    }
    return all;
}

/* Whether rows of bits have none behind the last feature. */
static bool have_clear_ends(const PgkmRows *rows)
{
    bool all = true;

    for (int64 i = 0; i < rows->n; ++i)
        for (Size f = rows->d; f < rows->row_bytes * 8; ++f)
            all &= !pgkm_bit_is_set(rows->values + i * rows->row_bytes, (int32)f);
    return all;
}

/* Rows that are part of the state are checked like those of a query, since they may come from anywhere. */
static void read_rows(const SerialHead *head, const char *place, Size size, PgkmRows *rows)
{
    const Size row = pgkm_row_bytes((PgkmElement)head->element, head->d);
    const Size weight = head->weighted != 0 ? sizeof(double) : 0;
    const Size count = (Size)head->n * head->d;

    if (size % (row + weight) != 0 || size / (row + weight) != (Size)head->n)
        pgkm_raise_state("Its length does not match its rows.");
    rows->element = (PgkmElement)head->element;
    rows->d = head->d;
    rows->n = head->n;
    rows->row_bytes = row;
    rows->weighted = head->weighted != 0;
    rows->values = (char *)place;
    rows->weights = rows->weighted ? (double *)(place + values_bytes(rows)) : NULL;
    if (!(rows->element == PGKM_BIT       ? have_clear_ends(rows)
          : rows->element == PGKM_FLOAT32 ? all_within<float>(place, count, -FLT_MAX, FLT_MAX)
                                          : all_within<double>(place, count, -PGKM_MAX_MAGNITUDE, PGKM_MAX_MAGNITUDE)))
        pgkm_raise_state("A feature is not finite or too large.");
    if (rows->weighted && !all_within<double>((const char *)rows->weights, rows->n, DBL_TRUE_MIN, PGKM_MAX_MAGNITUDE))
        pgkm_raise_state("A weight is out of its range.");
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

    const Size options = read_options(fcinfo, &head, place, size, &incoming->state.group);

    read_rows(&head, place + options, size - options, &incoming->rows);
    if (head.is_mixture != 0 && head.weighted != 0)
        pgkm_raise_state("Rows of a mixture have no weights.");
    incoming->state.rows = &incoming->rows;
    incoming->state.shared = head.shared;
    incoming->processes = 1;
    if (head.shared.n > 0)
        incoming->processes = shared_rows_find(fcinfo, &head.shared, &incoming->state.area, &incoming->last);
    PG_RETURN_POINTER(incoming);
}
