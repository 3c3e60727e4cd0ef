/*
 * aggregate.cpp - kmeans(features, k [, options [, weight]]) and gmm(features, k [, options]):
 * collecting rows, and the fit.
 *
 * One C function serves all overloads: what kind of array it reads stands in the array.
 */
#include "pg/aggregate.h"

#include <cmath>

#include "pg/aggregate_batch.h"
#include "pg/compat.h"
#include "pg/datum.h"
#include "pg/gmm.h"
#include "pg/model.h"
#include "pg/progress.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_aggregate_transition);
PG_FUNCTION_INFO_V1(pgkm_aggregate_final);
PG_FUNCTION_INFO_V1(pgkm_gmm_transition);
PG_FUNCTION_INFO_V1(pgkm_gmm_final);
}

/* Arguments of the transition functions; the aggregate's own start at features. */
enum TransitionArgument { ARGUMENT_STATE, ARGUMENT_FEATURES, ARGUMENT_K, ARGUMENT_OPTIONS, ARGUMENT_WEIGHT };

static MemoryContext aggregate_context(FunctionCallInfo fcinfo)
{
    MemoryContext context;

    if (!AggCheckCallContext(fcinfo, &context))
        elog(ERROR, "aggregate support function called in non-aggregate context");
    return context;
}

static NullableDatum options_argument(FunctionCallInfo fcinfo)
{
    static const NullableDatum none = {0, true};

    return PG_NARGS() > ARGUMENT_OPTIONS ? fcinfo->args[ARGUMENT_OPTIONS] : none;
}

/* The row's weight: 0 for a row to be skipped. */
static double weight_argument(FunctionCallInfo fcinfo)
{
    if (PG_NARGS() <= ARGUMENT_WEIGHT)
        return 1.0;
    if (PG_ARGISNULL(ARGUMENT_WEIGHT))
        return 0.0;

    const double weight = PG_GETARG_FLOAT8(ARGUMENT_WEIGHT);

    if (!(weight >= 0.0 && weight <= PGKM_MAX_MAGNITUDE))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("weight must be a finite number of at least 0 and at most 2^500")));
    return weight;
}

static AggregateState *begin_group(FunctionCallInfo fcinfo, const PgkmOptionsKind *kind, const PgkmVector *vector)
{
    const MemoryContext   context = aggregate_context(fcinfo);
    const NullableDatum   options = options_argument(fcinfo);
    AggregateState *const state = (AggregateState *) MemoryContextAllocZero(context, sizeof(AggregateState));

    pgkm_group_begin(&state->group, kind, context, &fcinfo->args[ARGUMENT_K], &options,
                     pgkm_is_constant_in_group(fcinfo, ARGUMENT_OPTIONS));
    state->rows = pgkm_rows_create(context, pgkm_element_of(vector->element_type), vector->length,
                                   PG_NARGS() > ARGUMENT_WEIGHT);
    if (kind == &pgkm_kmeans_options_kind)
        pgkm_batch_enlist(fcinfo, context, state);
    return state;
}

/*
 * The transition function of an aggregate that collects rows:
 *
 * transition(state internal, features, k [, options [, weight]]) -> internal
 *
 *   if features is NULL, or weight is NULL or 0: return state
 *   if state is NULL: state := no rows, with k and options
 *   unless k and options are those of the state: ERROR 22023
 *   append features (and weight) to the state
 *   return state
 */
static Datum collect_row(FunctionCallInfo fcinfo, const PgkmOptionsKind *kind)
{
    AggregateState *state =
        PG_ARGISNULL(ARGUMENT_STATE) ? NULL : (AggregateState *) PG_GETARG_POINTER(ARGUMENT_STATE);
    const double weight = PG_ARGISNULL(ARGUMENT_FEATURES) ? 0.0 : weight_argument(fcinfo);
    PgkmVector   vector;
    PgkmRowFault fault;

    if (weight == 0.0) {
        if (state == NULL)
            PG_RETURN_NULL();
        PG_RETURN_POINTER(state);
    }
    if (!pgkm_open_vector(PG_GETARG_DATUM(ARGUMENT_FEATURES), &vector, &fault))
        pgkm_raise_row_fault(&fault, NULL);
    if (state == NULL) {
        state = begin_group(fcinfo, kind, &vector);
    } else {
        const NullableDatum options = options_argument(fcinfo);

        pgkm_group_check(&state->group, &fcinfo->args[ARGUMENT_K], &options);
    }
    if (!pgkm_rows_add(state->rows, &vector, weight, &fault))
        pgkm_raise_row_fault(&fault, NULL);
    PG_RETURN_POINTER(state);
}

Datum pgkm_aggregate_transition(PG_FUNCTION_ARGS)
{
    return collect_row(fcinfo, &pgkm_kmeans_options_kind);
}

/* gmm_transition: the same for mixtures, which take no weight. */
Datum pgkm_gmm_transition(PG_FUNCTION_ARGS)
{
    return collect_row(fcinfo, &pgkm_mixture_options_kind);
}

/* What a final function keeps from group to group, in fn_extra. */
struct FinalCache {
    TupleDesc tupdesc;
    bool      warned; /* one warning per query is enough */
};

static FinalCache *final_cache(FunctionCallInfo fcinfo, TupleDesc (*model_tupdesc)(FunctionCallInfo))
{
    FmgrInfo *const flinfo = fcinfo->flinfo;

    if (flinfo->fn_extra == NULL) {
        const MemoryContext caller = MemoryContextSwitchTo(flinfo->fn_mcxt);
        FinalCache *const   cache = (FinalCache *) palloc0(sizeof(FinalCache));

        cache->tupdesc = model_tupdesc(fcinfo);
        flinfo->fn_extra = cache;
        MemoryContextSwitchTo(caller);
    }
    return (FinalCache *) flinfo->fn_extra;
}

static const PgkmFitResult *fit_alone(AggregateState *state)
{
    PgkmFitRequest request;
    PgkmRun        run;

    memset(&request, 0, sizeof request);
    request.points = pgkm_rows_points(state->rows);
    request.k = state->group.k;
    request.options = state->group.options.kmeans;
    pgkm_run_begin(&run, "kmeans", InvalidOid);

    const PgkmFitResult *result = pgkm_run_fit(&request, state->rows->context, &state->holder);

    pgkm_run_end(&run);
    return result;
}

/*
 * kmeans_final(state internal) -> kmeans_model
 *
 *   if state is NULL: return NULL
 *   return the model of a fit of the state's rows; the state stays as it is, so that a
 *   window frame may go on growing. Groups of a hash table are fitted together.
 */
Datum pgkm_aggregate_final(PG_FUNCTION_ARGS)
{
    aggregate_context(fcinfo);
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    AggregateState *const state = (AggregateState *) PG_GETARG_POINTER(0);
    FinalCache *const     cache = final_cache(fcinfo, pgkm_model_tupdesc);
    PgkmFitResult         result;

    pgkm_model_check_size(state->group.k, state->rows->n, state->rows->d);
    const bool in_batch = pgkm_batch_fit(fcinfo, state);

    if (in_batch)
        pgkm_group_result(state->holder, state->place, &result);
    else
        result = *fit_alone(state);
    if (!cache->warned)
        cache->warned = pgkm_warn_clusters(&result, state->group.k);

    const Datum model = pgkm_model_build(&result, &state->group.options.kmeans, cache->tupdesc);

    if (!in_batch)
        pgkm_release_fit(state->holder);
    PG_RETURN_DATUM(model);
}

/*
 * gmm_final(state internal) -> gmm_model: NULL without rows, else a fit of the state's rows;
 * the state stays as it is.
 */
Datum pgkm_gmm_final(PG_FUNCTION_ARGS)
{
    aggregate_context(fcinfo);
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    AggregateState *const state = (AggregateState *) PG_GETARG_POINTER(0);
    FinalCache *const     cache = final_cache(fcinfo, pgkm_gmm_model_tupdesc);
    PgkmMixtureRequest    request;
    PgkmMixtureResult     result;
    PgkmRun               run;

    memset(&request, 0, sizeof request);
    request.points = pgkm_rows_points(state->rows);
    request.k = state->group.k;
    request.options = state->group.options.mixture;
    pgkm_run_begin(&run, "gmm", InvalidOid);
    pgkm_run_mixture(&request, state->rows->context, &state->holder, &result);
    pgkm_run_end(&run);
    if (!cache->warned)
        cache->warned = pgkm_warn_components(&result, request.k);

    const Datum model = pgkm_gmm_model_build(&result, &request.options, cache->tupdesc);

    pgkm_release_fit(state->holder);
    PG_RETURN_DATUM(model);
}
