/*
 * aggregate.cpp - kmeans(features, k [, options [, weight]]), gmm(features, k [, options [, weight]]) and
 * kmeans_auto(features, k_min, k_max [, options [, weight]]): collecting rows.
 *
 * One C function serves all overloads: pgkm_vector_value makes an array of any argument, and its kind stands in it.
 */
#include "pg/aggregate/aggregate.h"

#include "pg/aggregate/batch.h"
#include "pg/aggregate/flat_state.h"
#include "pg/gmm/gmm.h"
#include "pg/kmeans/model.h"
#include "pg/values/datum.h"

extern "C" {
#include "access/parallel.h"
#include "nodes/execnodes.h"

PG_FUNCTION_INFO_V1(pgkm_aggregate_transition);
PG_FUNCTION_INFO_V1(pgkm_gmm_transition);
PG_FUNCTION_INFO_V1(pgkm_auto_transition);
}

/* Arguments of the transition functions; the aggregate's own start at features. Behind k comes k_max, if it has one. */
enum TransitionArgument { ARGUMENT_STATE, ARGUMENT_FEATURES, ARGUMENT_K };

struct Transition {
    const FitKind *kind;
    int k_max; /* its argument, or 0 for none */
    int options;
    int weight;
};

static const Transition kmeans_transition = {&kmeans_kind, 0, ARGUMENT_K + 1, ARGUMENT_K + 2};
static const Transition gmm_transition = {&gmm_kind, 0, ARGUMENT_K + 1, ARGUMENT_K + 2};
static const Transition auto_transition = {&kmeans_kind, ARGUMENT_K + 1, ARGUMENT_K + 2, ARGUMENT_K + 3};

MemoryContext pgkm_aggregate_context(FunctionCallInfo fcinfo)
{
    MemoryContext context;

    if (!AggCheckCallContext(fcinfo, &context))
        elog(ERROR, "aggregate support function called in non-aggregate context");
    return context;
}

static NullableDatum options_argument(FunctionCallInfo fcinfo, const Transition *transition)
{
    static const NullableDatum none = {0, true};

    return PG_NARGS() > transition->options ? fcinfo->args[transition->options] : none;
}

/* By the planner's estimates, once for the query: the rows of all groups, or of those that are sorted of one. Workers
 * take what they need as it comes. */
static void expect_rows(FunctionCallInfo fcinfo, const AggregateState *state)
{
    const Plan *const plan = ((const PlanState *)fcinfo->context)->plan;
    const bool in_turn = IsA(plan, Agg) && ((const Agg *)plan)->aggstrategy == AGG_SORTED;

    if (!IsParallelWorker() && outerPlan(plan) != NULL)
        pgkm_group_expect(&state->group, state->rows,
                          outerPlan(plan)->plan_rows / (in_turn ? Max(((const Agg *)plan)->numGroups, 1) : 1),
                          fcinfo->flinfo->fn_mcxt);
}

static const NullableDatum *k_max_argument(FunctionCallInfo fcinfo, const Transition *transition)
{
    return transition->k_max == 0 ? NULL : &fcinfo->args[transition->k_max];
}

static AggregateState *begin_group(FunctionCallInfo fcinfo, const Transition *transition, const PgkmVector *vector)
{
    const MemoryContext context = pgkm_aggregate_context(fcinfo);
    const NullableDatum options = options_argument(fcinfo, transition);
    AggregateState *const state = (AggregateState *)MemoryContextAllocZero(context, sizeof(AggregateState));

    pgkm_group_begin(&state->group, transition->kind, context, &fcinfo->args[ARGUMENT_K],
                     k_max_argument(fcinfo, transition), &options,
                     pgkm_is_constant_in_group(fcinfo, transition->options));
    state->rows = pgkm_rows_create(context, pgkm_element_of(vector->element_type), vector->length,
                                   PG_NARGS() > transition->weight);
    expect_rows(fcinfo, state);
    state->area = shared_rows_area(fcinfo);
    state->block = state->area == NULL ? PG_INT64_MAX : shared_rows_of_block(state->rows);
    pgkm_batch_enlist(fcinfo, context, state);
    return state;
}

static AggregateState *add_row(FunctionCallInfo fcinfo, const Transition *transition, AggregateState *state)
{
    PgkmVector vector;
    PgkmRowFault fault;
    double weight;

    if (!pgkm_row_arguments(fcinfo, ARGUMENT_FEATURES, transition->weight, &vector, &weight))
        return state;
    if (state == NULL) {
        state = begin_group(fcinfo, transition, &vector);
    } else {
        const NullableDatum options = options_argument(fcinfo, transition);

        pgkm_group_check(&state->group, &fcinfo->args[ARGUMENT_K], k_max_argument(fcinfo, transition), &options);
    }
    if (!pgkm_rows_add(state->rows, &vector, weight, &fault))
        pgkm_raise_row_fault(&fault, NULL);
    /* Where there is no room, the rows stay here. */
    if (state->rows->n == state->block && !shared_rows_leave(&state->shared, state->area, state->rows))
        state->block = PG_INT64_MAX;
    return state;
}

/*
 * The transition function of an aggregate that collects rows:
 *
 * transition(state internal, features, k [, k_max] [, options [, weight]]) -> internal
 *
 *   if features is NULL or all NULLs, or weight is NULL or 0: return state
 *   if state is NULL: state := no rows, with k and options
 *   unless k and options are those of the state: ERROR 22023
 *   append features (and weight) to the state
 *   return state
 */
static Datum collect_row(FunctionCallInfo fcinfo, const Transition *transition)
{
    AggregateState *const state =
        PG_ARGISNULL(ARGUMENT_STATE) ? NULL : (AggregateState *)PG_GETARG_POINTER(ARGUMENT_STATE);
    const auto add = [transition](FunctionCallInfo call, AggregateState *to) { return add_row(call, transition, to); };

    return pgkm_accumulate(fcinfo, state, state == NULL ? 0 : state->shared.n + state->rows->n, add);
}

Datum pgkm_aggregate_transition(PG_FUNCTION_ARGS)
{
    return collect_row(fcinfo, &kmeans_transition);
}

/* pgkm_gmm_transition: the same for mixtures. */
Datum pgkm_gmm_transition(PG_FUNCTION_ARGS)
{
    return collect_row(fcinfo, &gmm_transition);
}

/* pgkm_auto_transition: the same for a range of k. */
Datum pgkm_auto_transition(PG_FUNCTION_ARGS)
{
    return collect_row(fcinfo, &auto_transition);
}
