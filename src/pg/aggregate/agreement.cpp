/*
 * agreement.cpp - the aggregate cluster_agreement(a, b): how much two labellings of the same rows agree.
 *
 * A state is how many rows there are of each pair of labels, in any order; a pair may be there more than once until the
 * room is used up. So it grows by the pairs that differ, and the order of rows does not count.
 */
#include "pg/compat.h"

#include <algorithm>
#include <tuple>

#include "pg/aggregate/aggregate.h"
#include "pg/values/composite.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_agreement_accum);
PG_FUNCTION_INFO_V1(pgkm_agreement_combine);
PG_FUNCTION_INFO_V1(pgkm_agreement_serialize);
PG_FUNCTION_INFO_V1(pgkm_agreement_deserialize);
PG_FUNCTION_INFO_V1(pgkm_agreement_final);
}

/* Lives in the aggregate's memory context, like its pairs. */
struct AgreementState {
    int64 used;
    int64 capacity;
    PgkmLabelPair *pairs;
};

#define LEAST_CAPACITY 16
#define MOST_TABLE_BYTES ((uint64)1024 * 1024 * 1024)

static const PgkmField agreement_fields[] = {{"adjusted_rand", FLOAT8OID}, {"moved", FLOAT8OID}, {"n", INT8OID}};
static const PgkmCompositeType agreement_type = {"cluster_agreement", agreement_fields, lengthof(agreement_fields)};

static AgreementState *create(MemoryContext context, int64 capacity)
{
    AgreementState *const state = (AgreementState *)MemoryContextAllocZero(context, sizeof(AgreementState));

    state->capacity = capacity;
    state->pairs = (PgkmLabelPair *)MemoryContextAllocHuge(context, (Size)capacity * sizeof(PgkmLabelPair));
    return state;
}

/* Adds up pairs that are there more than once. */
static void merge_equal(AgreementState *state)
{
    PgkmLabelPair *const pairs = state->pairs;
    int64 last = 0;

    std::sort(pairs, pairs + state->used,
              [](const PgkmLabelPair &x, const PgkmLabelPair &y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); });
    for (int64 i = 1; i < state->used; ++i) {
        if (pairs[i].a == pairs[last].a && pairs[i].b == pairs[last].b)
            pairs[last].n += pairs[i].n;
        else
            pairs[++last] = pairs[i];
    }
    state->used = Min(state->used, last + 1);
}

/* Where merging leaves less than half of the room, a row takes the logarithm of the number of pairs on average. */
static void add(AgreementState *state, const PgkmLabelPair *pair)
{
    if (state->used == state->capacity) {
        merge_equal(state);
        if (state->used > state->capacity / 2) {
            state->capacity *= 2;
            state->pairs = (PgkmLabelPair *)repalloc_huge(state->pairs, (Size)state->capacity * sizeof(PgkmLabelPair));
        }
    }
    state->pairs[state->used++] = *pair;
}

/* pgkm_agreement_accum(state internal, a bigint, b bigint) -> internal: a row with a NULL does not count. */
Datum pgkm_agreement_accum(PG_FUNCTION_ARGS)
{
    const MemoryContext context = pgkm_aggregate_context(fcinfo);
    AgreementState *state = PG_ARGISNULL(0) ? NULL : (AgreementState *)PG_GETARG_POINTER(0);

    if (!PG_ARGISNULL(1) && !PG_ARGISNULL(2)) {
        const PgkmLabelPair pair = {PG_GETARG_INT64(1), PG_GETARG_INT64(2), 1};

        if (state == NULL)
            state = create(context, LEAST_CAPACITY);
        add(state, &pair);
    }
    if (state == NULL)
        PG_RETURN_NULL();
    PG_RETURN_POINTER(state);
}

/* pgkm_agreement_combine(a internal, b internal) -> internal: a, with the rows of b. */
Datum pgkm_agreement_combine(PG_FUNCTION_ARGS)
{
    const MemoryContext context = pgkm_aggregate_context(fcinfo);
    AgreementState *a = PG_ARGISNULL(0) ? NULL : (AgreementState *)PG_GETARG_POINTER(0);
    const AgreementState *const b = PG_ARGISNULL(1) ? NULL : (const AgreementState *)PG_GETARG_POINTER(1);

    if (a == NULL && b != NULL)
        a = create(context, LEAST_CAPACITY);
    for (int64 i = 0; b != NULL && i < b->used; ++i)
        add(a, &b->pairs[i]);
    if (a == NULL)
        PG_RETURN_NULL();
    PG_RETURN_POINTER(a);
}

/* pgkm_agreement_serialize(state internal) -> bytea: the pairs, as servers of one build have them. */
Datum pgkm_agreement_serialize(PG_FUNCTION_ARGS)
{
    pgkm_aggregate_context(fcinfo);

    AgreementState *const state = (AgreementState *)PG_GETARG_POINTER(0);

    merge_equal(state);

    const Size bytes = (Size)state->used * sizeof(PgkmLabelPair);

    if (bytes > MaxAllocSize - VARHDRSZ)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many pairs of labels to compare")));

    bytea *const written = (bytea *)palloc(VARHDRSZ + bytes);

    SET_VARSIZE(written, VARHDRSZ + bytes);
    memcpy(VARDATA(written), state->pairs, bytes);
    PG_RETURN_BYTEA_P(written);
}

/* pgkm_agreement_deserialize(bytes bytea, internal) -> internal */
Datum pgkm_agreement_deserialize(PG_FUNCTION_ARGS)
{
    pgkm_aggregate_context(fcinfo);

    const bytea *const written = PG_GETARG_BYTEA_PP(0);
    const Size bytes = VARSIZE_ANY_EXHDR(written);

    if (bytes == 0 || bytes % sizeof(PgkmLabelPair) != 0)
        pgkm_raise_state("Its length is not one of pairs of labels.");

    AgreementState *const state = create(CurrentMemoryContext, (int64)(bytes / sizeof(PgkmLabelPair)));

    state->used = state->capacity;
    memcpy(state->pairs, VARDATA_ANY(written), bytes);
    PG_RETURN_POINTER(state);
}

/* pgkm_agreement_final(state internal) -> cluster_agreement; NULL of no rows. */
Datum pgkm_agreement_final(PG_FUNCTION_ARGS)
{
    pgkm_aggregate_context(fcinfo);
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    const AgreementState *const state = (const AgreementState *)PG_GETARG_POINTER(0);
    const uint64 most_bytes = Min(pgkm_memory_available(), MOST_TABLE_BYTES);
    PgkmAgreement agreement;
    PgkmError error;

    if (pgkm_agreement(state->pairs, state->used, most_bytes, &agreement, pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error, error.status != PGKM_LIMIT ? NULL
                                                      : psprintf("A table of all labels of both may take %llu kB.",
                                                                 (unsigned long long)(most_bytes / 1024)));
    PG_RETURN_DATUM(pgkm_composite_make(pgkm_result_tupdesc(fcinfo, &agreement_type),
                                        {agreement.adjusted_rand, agreement.moved, agreement.n}));
}
