/*
 * flat_state.h - states of aggregates that are bytea: those of kmeans_step and pca.
 *
 * Such a state is one flat varlena that begins with its length and a version, and nothing of this
 * server but the order of its bytes is in it. Its size never changes, so that an aggregate changes it in place.
 * Elsewhere a copy is changed. Anybody can call the functions of an aggregate with bytes of his own, so these are
 * checked in each call: a State has the fields version and values, the constants aggregate and current_version, and the
 * functions is_whole() (whether its numbers and its length fit together) and rows().
 */
#ifndef PGKM_PG_FLAT_STATE_H
#define PGKM_PG_FLAT_STATE_H

#include "pg/compat.h"

#include "pg/aggregate/group_name.h"

/* Where a state lies that the function makes: in the aggregate's memory, outside of an aggregate in the caller's. */
static inline MemoryContext pgkm_flat_context(FunctionCallInfo fcinfo)
{
    MemoryContext context;

    return AggCheckCallContext(fcinfo, &context) ? context : CurrentMemoryContext;
}

/* A state of `size` bytes, zero but for its head. */
template <typename State>
static State *pgkm_flat_create(MemoryContext context, Size size)
{
    State *const state = (State *)MemoryContextAllocZero(context, size);

    SET_VARSIZE(state, size);
    state->version = State::current_version;
    return state;
}

/* Argument `number` as a checked state, aligned and with a four-byte header. 22P03 for other bytes, as those of another
 * version of the extension. */
template <typename State>
static State *pgkm_flat_argument(FunctionCallInfo fcinfo, int number, bool copy = false)
{
    const Datum value = PG_GETARG_DATUM(number);
    const bool in_place = !copy && (Datum)TYPEALIGN(alignof(State), value) == value;
    State *const state = (State *)(in_place ? PG_DETOAST_DATUM(value) : PG_DETOAST_DATUM_COPY(value));

    if (VARSIZE(state) < offsetof(State, values) || state->version != State::current_version || !state->is_whole())
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("invalid state of aggregate %s", State::aggregate),
                        errdetail("It is damaged, or of another version of pg_kmeans or another kind of machine.")));
    return state;
}

/* The same of a state that the function changes and returns. */
template <typename State>
static State *pgkm_flat_own(FunctionCallInfo fcinfo, int number)
{
    return pgkm_flat_argument<State>(fcinfo, number, AggCheckCallContext(fcinfo, NULL) == 0);
}

/* The end of any transition function: add(state) returns the state with the call's row, NULL as long as
 * there is none. Errors name the row, which comes behind `rows` others. */
template <typename State, typename Add>
static Datum pgkm_accumulate(FunctionCallInfo fcinfo, State *state, int64 rows, Add add)
{
    PgkmRowContext context;

    pgkm_row_context_begin(&context, fcinfo, rows + 1);
    state = add(fcinfo, state);
    pgkm_row_context_end(&context);
    if (state == NULL)
        PG_RETURN_NULL();
    PG_RETURN_POINTER(state);
}

/* A transition function of a flat state. */
template <typename State, typename Add>
static Datum pgkm_flat_accumulate(FunctionCallInfo fcinfo, Add add)
{
    State *const state = PG_ARGISNULL(0) ? NULL : pgkm_flat_own<State>(fcinfo, 0);

    return pgkm_accumulate(fcinfo, state, state == NULL ? 0 : state->rows(), add);
}

/*
 * A function of a state and of what is merged with it, which read(context) makes a state in that context:
 *
 *   if b is NULL: return a            -- a worker or node that saw no rows
 *   if a is NULL: return b
 *   merge(a, b); return a             -- merge raises an error where they do not fit together
 */
template <typename State, typename Read, typename Merge>
static Datum pgkm_flat_merge(FunctionCallInfo fcinfo, Read read, Merge merge)
{
    if (PG_ARGISNULL(1)) {
        if (PG_ARGISNULL(0))
            PG_RETURN_NULL();
        PG_RETURN_DATUM(PG_GETARG_DATUM(0));
    }
    if (PG_ARGISNULL(0))
        PG_RETURN_POINTER(read(pgkm_flat_context(fcinfo)));

    State *const a = pgkm_flat_own<State>(fcinfo, 0);

    merge(a, read(CurrentMemoryContext));
    PG_RETURN_POINTER(a);
}

/* A combine function. The executor copies a result that is not its own state, so b may be handed back. */
template <typename State, typename Merge>
static Datum pgkm_flat_combine(FunctionCallInfo fcinfo, Merge merge)
{
    return pgkm_flat_merge<State>(
        fcinfo, [fcinfo](MemoryContext) { return pgkm_flat_argument<State>(fcinfo, 1); }, merge);
}

#endif
