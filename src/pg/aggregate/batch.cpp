/*
 * batch.cpp - fits the groups of a hash aggregate together.
 */
#include "pg/aggregate/batch.h"

#include "pg/compat.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/memutils.h"
}

/* A group whose rows have more bytes keeps the threads busy by itself, and is not worth a copy. */
#define LARGE_GROUP_BYTES (16 * 1024 * 1024)

/* A batch takes at most this share of the memory that is left. */
#define MEMORY_SHARE 4

/* A batch has at most so many groups, and features of all groups: the work on each before and after the fits cannot
 * be interrupted, and so many fits keep all threads busy. */
#define MOST_GROUPS 16384
#define MOST_FEATURES (1024 * 1024)

/* How many states may be looked at in vain, when options differ from group to group, beside four for each that is
 * found. */
#define VAIN_LOOKS 1024

/* The executor's node when the group lies in its hash table; else NULL. */
static const AggState *hashed_node(FunctionCallInfo fcinfo)
{
    if (fcinfo->context == NULL || !IsA(fcinfo->context, AggState))
        return NULL;

    const AggState *const node = (const AggState *)fcinfo->context;
    const bool hashed = node->hashcontext != NULL && node->curaggcontext == node->hashcontext;

    return hashed && !DO_AGGSPLIT_SKIPFINAL(node->aggsplit) ? node : NULL;
}

/* Says that the argument is a list: of the states in the memory of a hash table that are not fitted yet. A spilled
 * aggregate resets that before the next part of its groups, and this callback goes with the states. */
static void holds_states(Datum) {}

static AggregateState **states_of(const AggState *node)
{
    for (const ExprContext_CB *callback = node->hashcontext->ecxt_callbacks; callback != NULL;
         callback = callback->next)
        if (callback->function == holds_states)
            return (AggregateState **)DatumGetPointer(callback->arg);
    return NULL;
}

void pgkm_batch_enlist(FunctionCallInfo fcinfo, MemoryContext context, AggregateState *state)
{
    const AggState *const node = hashed_node(fcinfo);

    if (node == NULL)
        return;

    AggregateState **states = states_of(node);

    if (states == NULL) {
        states = (AggregateState **)MemoryContextAllocZero(context, sizeof(AggregateState *));
        AggRegisterCallback(fcinfo, holds_states, PointerGetDatum(states));
    }
    state->next = *states;
    *states = state;
}

static bool is_large(const AggregateState *state)
{
    return state->rows->n * state->rows->row_bytes > LARGE_GROUP_BYTES;
}

static bool may_join(const AggregateState *a, const AggregateState *b)
{
    return a->rows->element == b->rows->element && a->rows->d == b->rows->d && a->rows->weighted == b->rows->weighted &&
           a->group.k_last == b->group.k_last && !is_large(b) && pgkm_group_same_options(&a->group, &b->group);
}

/* States chosen for one call. */
struct Batch {
    PgkmRequest request; /* with groups like the first one's */
    PgkmGroup *groups;   /* room for MOST_GROUPS, as in states */
    AggregateState **states;
    int64 n;
    uint64 bytes_left;
};

static bool is_full(const Batch *batch)
{
    return batch->n >= MOST_GROUPS || (batch->n > 1 && batch->n * batch->request.points.d >= MOST_FEATURES);
}

static PgkmGroup group_of(const AggregateState *state)
{
    const PgkmPoints points = pgkm_rows_points(state->rows);

    return {points.values, points.weights, points.n, state->group.k};
}

/* The options may ask of one group what its rows cannot give. That group is fitted alone, so that the error names it.
 */
static bool may_be_fitted(const Batch *batch, const AggregateState *state)
{
    const PgkmGroup group = group_of(state);
    PgkmError error;

    return pgkm_request_accepts(&batch->request, &group, &error) == PGKM_OK;
}

/* False when it is too much beside the others. */
static bool add(Batch *batch, AggregateState *state)
{
    const PgkmGroup group = group_of(state);
    const uint64 bytes = pgkm_group_estimate(&batch->request, &group);

    if (bytes > batch->bytes_left || is_full(batch))
        return false;
    batch->bytes_left -= bytes;
    batch->groups[batch->n] = group;
    batch->states[batch->n++] = state;
    return true;
}

static void start_batch(Batch *batch, const AggregateState *state)
{
    const uint64 available = pgkm_memory_free();
    const PgkmGroup none = {NULL, NULL, 0, 0};

    memset(batch, 0, sizeof *batch);
    batch->groups = (PgkmGroup *)palloc(MOST_GROUPS * sizeof(PgkmGroup));
    batch->states = (AggregateState **)palloc(MOST_GROUPS * sizeof(AggregateState *));
    pgkm_group_request(&state->group, state->rows, &batch->request);
    batch->request.groups = &none;
    batch->request.n_groups = 1;

    const uint64 fixed = pgkm_request_estimate(&batch->request) - pgkm_group_estimate(&batch->request, &none);

    batch->bytes_left = available > fixed ? (available - fixed) / MEMORY_SHARE : 0;
}

/* Chooses the state that was asked for and all that may join it, and takes them off the list at `place`, with others
 * that were fitted when they had not been reached there. */
static void choose(Batch *batch, AggregateState *asked, AggregateState **place)
{
    if (!add(batch, asked))
        return;
    for (int64 looked = 0; *place != NULL && looked <= VAIN_LOOKS + 4 * batch->n; ++looked) {
        AggregateState *const state = *place;
        const bool waits = state != asked && !state->fitted;

        if (waits && !(may_join(asked, state) && may_be_fitted(batch, state))) {
            place = &state->next;
            continue;
        }
        if (waits && !add(batch, state))
            break;
        *place = state->next;
    }
}

static void fit(Batch *batch, MemoryContext context)
{
    PgkmJobHolder *holder = NULL;

    batch->request.groups = batch->groups;
    batch->request.n_groups = batch->n;
    pgkm_aggregate_run(pgkm_group_function(&batch->states[0]->group), &batch->request, context, &holder);
    for (int64 i = 0; i < batch->n; ++i) {
        batch->states[i]->holder = holder;
        batch->states[i]->place = i;
        batch->states[i]->fitted = true;
    }
}

bool pgkm_batch_fit(FunctionCallInfo fcinfo, AggregateState *state)
{
    if (state->fitted)
        return true;

    const AggState *const node = hashed_node(fcinfo);
    const MemoryContext context = state->rows->context;
    AggregateState **const states = node != NULL && node->table_filled ? states_of(node) : NULL;
    Batch batch;

    if (states == NULL || is_large(state))
        return false;
    start_batch(&batch, state);
    choose(&batch, state, states);
    if (batch.n > 1)
        fit(&batch, context);
    pfree(batch.groups);
    pfree(batch.states);
    return batch.n > 1;
}
