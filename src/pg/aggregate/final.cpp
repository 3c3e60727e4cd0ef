/*
 * final.cpp - kmeans_final and gmm_final: the fits of what the aggregates collected.
 */
#include "pg/aggregate/aggregate.h"

#include "pg/aggregate/batch.h"
#include "pg/compat.h"
#include "pg/gmm/gmm.h"
#include "pg/kmeans/model.h"
#include "pg/progress.h"
#include "pg/rows/image.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_aggregate_final);
PG_FUNCTION_INFO_V1(pgkm_gmm_final);
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

/* Of the aggregate's own algorithm: one that was read from bytes may be of the other. */
static AggregateState *state_argument(FunctionCallInfo fcinfo, const PgkmOptionsKind *kind)
{
    AggregateState *const state = (AggregateState *) PG_GETARG_POINTER(0);

    if (state->group.kind != kind)
        pgkm_raise_state("It belongs to another aggregate.");
    return state;
}

/* A request for the rows of one state, or (groups) for what is like it. */
template <typename Request>
static Request request_for(const AggregateState *state)
{
    Request request;

    memset(&request, 0, sizeof request);
    request.points = pgkm_rows_points(state->rows);
    request.segment = pgkm_rows_segment(state->rows);
    request.k = state->group.k;
    return request;
}

/* --- k-means --- */

static PgkmFitRequest fit_request(const AggregateState *state)
{
    PgkmFitRequest request = request_for<PgkmFitRequest>(state);

    request.options = state->group.options.kmeans;
    return request;
}

static uint64 fit_fixed(const AggregateState *first)
{
    return pgkm_fit_estimate(0, first->rows->d, 0, first->rows->element, &first->group.options.kmeans, false);
}

static uint64 fit_estimate(const AggregateState *first, const PgkmGroup *group)
{
    const PgkmFitRequest request = fit_request(first);

    return pgkm_group_estimate(&request, group);
}

static void fit_groups(const AggregateState *first, const PgkmGroup *groups, int64 count, MemoryContext context,
                       PgkmJobHolder **holder)
{
    PgkmFitRequest request = fit_request(first);
    PgkmRun        run;

    request.groups = groups;
    request.n_groups = count;
    pgkm_run_begin(&run, "kmeans", InvalidOid);
    pgkm_run_fit(&request, context, holder, NULL);
    pgkm_run_end(&run);
}

static const PgkmBatchKind fit_batch = {fit_fixed, fit_estimate, fit_groups};

static const PgkmFitResult *fit_alone(AggregateState *state)
{
    const PgkmFitRequest request = fit_request(state);
    PgkmRun              run;

    pgkm_run_begin(&run, "kmeans", InvalidOid);

    const PgkmFitResult *result = pgkm_run_fit(&request, state->rows->context, &state->holder, NULL);

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
    pgkm_aggregate_context(fcinfo);
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    AggregateState *const state = state_argument(fcinfo, &pgkm_kmeans_options_kind);
    FinalCache *const     cache = final_cache(fcinfo, pgkm_model_tupdesc);
    PgkmFitResult         result;

    pgkm_model_check_size(state->group.k, state->rows->n, state->rows->d);
    const bool in_batch = pgkm_batch_fit(fcinfo, &fit_batch, state);

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

/* --- mixtures --- */

static PgkmMixtureRequest mixture_request(const AggregateState *state)
{
    PgkmMixtureRequest request = request_for<PgkmMixtureRequest>(state);

    request.options = state->group.options.mixture;
    return request;
}

static uint64 mixture_fixed(const AggregateState *first)
{
    PgkmMixtureRequest request = mixture_request(first);
    const PgkmGroup    none = {NULL, NULL, 0, 0};

    request.groups = &none;
    request.n_groups = 1;
    return pgkm_mixture_estimate(&request) - pgkm_mixture_group_estimate(&request, &none);
}

static uint64 mixture_estimate(const AggregateState *first, const PgkmGroup *group)
{
    const PgkmMixtureRequest request = mixture_request(first);

    return pgkm_mixture_group_estimate(&request, group);
}

static void run_mixtures(PgkmMixtureRequest *request, MemoryContext context, PgkmJobHolder **holder,
                         PgkmMixtureResult *result)
{
    PgkmRun run;

    pgkm_run_begin(&run, "gmm", InvalidOid);
    pgkm_run_mixture(request, context, holder, result);
    pgkm_run_end(&run);
}

static void mixture_groups(const AggregateState *first, const PgkmGroup *groups, int64 count, MemoryContext context,
                           PgkmJobHolder **holder)
{
    PgkmMixtureRequest request = mixture_request(first);
    PgkmMixtureResult  result;

    request.groups = groups;
    request.n_groups = count;
    run_mixtures(&request, context, holder, &result);
}

static const PgkmBatchKind mixture_batch = {mixture_fixed, mixture_estimate, mixture_groups};

/*
 * gmm_final(state internal) -> gmm_model: NULL without rows, else a fit of the state's rows;
 * the state stays as it is. Groups of a hash table are fitted together.
 */
Datum pgkm_gmm_final(PG_FUNCTION_ARGS)
{
    pgkm_aggregate_context(fcinfo);
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    AggregateState *const state = state_argument(fcinfo, &pgkm_mixture_options_kind);
    FinalCache *const     cache = final_cache(fcinfo, pgkm_gmm_model_tupdesc);
    PgkmMixtureRequest    request = mixture_request(state);
    PgkmMixtureResult     result;

    pgkm_mixture_check_size(&request);
    const bool in_batch = pgkm_batch_fit(fcinfo, &mixture_batch, state);

    if (in_batch)
        pgkm_mixture_of_group(state->holder, state->place, &result);
    else
        run_mixtures(&request, state->rows->context, &state->holder, &result);
    if (!cache->warned)
        cache->warned = pgkm_warn_components(&result, request.k);

    const Datum model = pgkm_gmm_model_build(&result, &request.options, cache->tupdesc);

    if (!in_batch)
        pgkm_release_fit(state->holder);
    PG_RETURN_DATUM(model);
}
