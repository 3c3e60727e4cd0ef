/*
 * final.cpp - pgkm_final, pgkm_auto_final and pgkm_gmm_final: the fits of what the aggregates collected.
 */
#include "pg/aggregate/aggregate.h"

#include "pg/aggregate/batch.h"
#include "pg/aggregate/group_name.h"
#include "pg/gmm/gmm.h"
#include "pg/kmeans/model.h"
#include "pg/run/fit_count.h"
#include "pg/run/server_limits.h"
#include "pg/settings.h"

extern "C" {
#include "executor/executor.h"

PG_FUNCTION_INFO_V1(pgkm_aggregate_final);
PG_FUNCTION_INFO_V1(pgkm_gmm_final);
PG_FUNCTION_INFO_V1(pgkm_auto_final);
}

/* What a final function keeps from group to group, in fn_extra. */
struct FinalCache {
    TupleDesc tupdesc;
    PgkmFitCount count;
    bool warns; /* at the end of the query */
};

/* The query ends and has met no error. */
static void warn_at_end(Datum count)
{
    pgkm_warn_counted((const PgkmFitCount *)DatumGetPointer(count));
}

/* One warning of each kind per query, which counts fits: so they come at the end. The executor resets a node's own
 * expression context when it scans the node again, but not this one. */
static void count_fit(FunctionCallInfo fcinfo, const PgkmRequest *request, const PgkmResult *result, FinalCache *cache)
{
    PlanState *const node = (PlanState *)fcinfo->context; /* of an aggregate or a window aggregate */

    const bool unfinished = pgkm_count_fit(&cache->count, request, result);
    const bool fewer = pgkm_count_fewer(&cache->count, request->algorithm, result, request->k);

    if (fewer) {
        const char *const name = pgkm_group_name(fcinfo);

        cache->count.group = name == NULL ? NULL : MemoryContextStrdup(fcinfo->flinfo->fn_mcxt, name);
    }
    if ((unfinished || fewer) && !cache->warns) {
        cache->warns = true;
        RegisterExprContextCallback(CreateExprContext(node->state), warn_at_end, PointerGetDatum(&cache->count));
    }
}

static FinalCache *final_cache(FunctionCallInfo fcinfo, const FitKind *kind)
{
    FmgrInfo *const flinfo = fcinfo->flinfo;

    if (flinfo->fn_extra == NULL) {
        const MemoryContext caller = MemoryContextSwitchTo(flinfo->fn_mcxt);
        FinalCache *const cache = (FinalCache *)palloc0(sizeof(FinalCache));

        cache->tupdesc = kind->tupdesc(fcinfo);
        flinfo->fn_extra = cache;
        MemoryContextSwitchTo(caller);
    }
    return (FinalCache *)flinfo->fn_extra;
}

void pgkm_group_request(const PgkmGroupArguments *group, const PgkmRows *rows, PgkmRequest *request)
{
    memset(request, 0, sizeof *request);
    request->algorithm = group->kind->algorithm;
    request->points = pgkm_rows_points(rows);
    request->k = group->k;
    request->k_last = group->k_last;
    request->suggest = group->k_last != 0;
    request->silhouette_rows = request->suggest != 0 ? -1 : 0;
    *fit_options(request) = group->options;
}

void pgkm_group_expect(const PgkmGroupArguments *group, const PgkmRows *rows, double n, MemoryContext context)
{
    PgkmRequest request;

    if (pgkm_max_memory() == 0 || pgkm_server_has_promised())
        return;
    pgkm_group_request(group, rows, &request);
    request.points.n = (int64)Min(n, 1e15);
    pgkm_memory_expect(n * (double)rows->row_bytes + (double)pgkm_request_estimate(&request), context);
}

const PgkmResult *pgkm_aggregate_run(const char *function, const PgkmRequest *request, MemoryContext context,
                                     PgkmJobHolder **holder)
{
    PgkmRun run;

    pgkm_run_begin(&run, function, InvalidOid);

    const PgkmResult *result = pgkm_run_job(request, context, holder, NULL);

    pgkm_run_end(&run);
    return result;
}

/* Names the group whose rows do not suit the options. */
static void check_group(FunctionCallInfo fcinfo, const PgkmRequest *request)
{
    const PgkmGroup group = {request->points.values, request->points.weights, request->points.n, request->k};
    PgkmError error;

    if (pgkm_request_accepts(request, &group, &error) == PGKM_OK)
        return;

    const char *const name = pgkm_group_name(fcinfo);

    pgkm_raise(&error, name == NULL ? NULL : psprintf("The rows are those with %s.", name));
}

/* A fit of the state's rows, alone or together with others. */
static void fit_state(FunctionCallInfo fcinfo, AggregateState *state, const PgkmRequest *request, FinalCache *cache,
                      PgkmResult *result)
{
    if (pgkm_batch_fit(fcinfo, state))
        pgkm_result_of(state->holder, state->place, result);
    else
        *result =
            *pgkm_aggregate_run(pgkm_group_function(&state->group), request, state->rows->context, &state->holder);
    count_fit(fcinfo, request, result, cache);
}

/*
 * final(state internal) -> kmeans_model or gmm_model
 *
 *   if state is NULL: return NULL
 *   return the model of a fit of the state's rows; the state stays as it is, so that a
 *   window frame may go on growing. Groups of a hash table are fitted together.
 */
static Datum finish(FunctionCallInfo fcinfo, const FitKind *kind, bool of_range = false)
{
    pgkm_aggregate_context(fcinfo);
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    AggregateState *const state = (AggregateState *)PG_GETARG_POINTER(0);
    FinalCache *const cache = final_cache(fcinfo, kind);
    PgkmRequest request;
    PgkmResult result;

    if (state->group.kind != kind || (state->group.k_last != 0) != of_range) /* one that was read from bytes */
        pgkm_raise_state("It belongs to another aggregate.");
    pgkm_group_request(&state->group, state->rows, &request);
    kind->check_size(&request, Max(request.k, request.k_last), request.points.n);
    check_group(fcinfo, &request);
    fit_state(fcinfo, state, &request, cache, &result);

    const Datum model = kind->model(&result, &request, NULL, cache->tupdesc);

    if (!state->fitted)
        pgkm_release_job(state->holder);
    PG_RETURN_DATUM(model);
}

Datum pgkm_aggregate_final(PG_FUNCTION_ARGS)
{
    return finish(fcinfo, &kmeans_kind);
}

Datum pgkm_gmm_final(PG_FUNCTION_ARGS)
{
    return finish(fcinfo, &gmm_kind);
}

/* pgkm_auto_final: the model of the k that a sweep of the range suggests. */
Datum pgkm_auto_final(PG_FUNCTION_ARGS)
{
    return finish(fcinfo, &kmeans_kind, true);
}
