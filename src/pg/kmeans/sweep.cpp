/*
 * sweep.cpp - kmeans_sweep: which k suits a table.
 */
#include "pg/kmeans/sweep.h"

#include <cmath>

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_sweep);
}

int64 kmeans_sweep_range(FunctionCallInfo fcinfo, int64 *k_max)
{
    const int64 k_min = pgkm_k_argument(fcinfo, SWEEP_K_MIN, "k_min");

    *k_max = pgkm_k_argument(fcinfo, SWEEP_K_MAX, "k_max");
    if (*k_max < k_min)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("k_max must be at least k_min, which is %lld, not %lld", (long long)k_min, (long long)*k_max)));
    return k_min;
}

int64 kmeans_sweep_last(int64 k_min, int64 k_max, int64 n)
{
    const int64 last = Max(k_min, Min(k_max, n));

    if (last < k_max)
        ereport(NOTICE, (errmsg("the sweep ends at k = %lld: there are %lld rows", (long long)last, (long long)n)));
    return last;
}

/* An index that is not defined is NULL. */
static PgkmValue index_value(double value)
{
    return pgkm_value_if(!std::isnan(value), value);
}

/* Which k to take, and why. */
struct Suggestion {
    int64 place; /* among the results; -1: none */
    const char *reason;
};

/* Looks for the best of a criterion among the results that have it: the greatest, of several the first. */
struct Best {
    int64 place = -1;
    double value = 0;

    void consider(int64 i, double candidate)
    {
        if (!std::isnan(candidate) && (place < 0 || candidate > value)) {
            place = i;
            value = candidate;
        }
    }
};

/* One cluster has no silhouette: it is suggested where every split is worse by the BIC. */
static Suggestion suggest(const TableCall *call, int64 count)
{
    Best silhouette;
    Best simplified;
    Best bic;

    for (int64 i = 0; i < count; ++i) {
        PgkmResult result;

        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        silhouette.consider(i, result.quality.silhouette);
        simplified.consider(i, result.quality.simplified_silhouette);
        bic.consider(i, -result.quality.bic);
    }
    if (count > 1 && call->request.k == 1 && bic.place == 0)
        return {0, "lowest BIC"};
    if (silhouette.place >= 0)
        return {silhouette.place, "highest silhouette"};
    return {simplified.place, "highest simplified silhouette"};
}

static void put_results(TableCall *call, int64 count, ReturnSetInfo *target)
{
    const Suggestion suggestion = suggest(call, count);

    for (int64 i = 0; i < count; ++i) {
        PgkmResult result;
        const PgkmQuality *const quality = &result.quality;

        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        pgkm_result_put(target, {call->request.k + i, result.inertia, index_value(quality->davies_bouldin),
                                 index_value(quality->calinski_harabasz), index_value(quality->simplified_silhouette),
                                 result.k, result.n_iter, result.converged != 0, index_value(quality->silhouette),
                                 index_value(quality->silhouette_error), index_value(quality->bic),
                                 i == suggestion.place ? suggestion.reason : NULL});
    }
}

/* How many rows the silhouettes are of; -1 where that is not given. */
static int64 sample_argument(FunctionCallInfo fcinfo)
{
    if (PG_ARGISNULL(SWEEP_NEXT))
        return -1;
    if (PG_GETARG_INT32(SWEEP_NEXT) < 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("sample must be at least 0")));
    return PG_GETARG_INT32(SWEEP_NEXT);
}

TableCall *kmeans_sweep_fit(FunctionCallInfo fcinfo, const char *function, int64 silhouette_rows, int64 *count)
{
    TableCall *const call = kmeans_call_create(table_arguments(fcinfo, SWEEP_OPTIONS), function,
                                               {"init_centroids", "init_model", "max_radius"}); /* of one k */
    PgkmRequest *const request = &call->request;
    TableQuery query = {};

    request->k = kmeans_sweep_range(fcinfo, &request->k_last);
    table_call_find(call, TABLE_READ);
    query.on_nodes = query.may_stream = kmeans_call_is_spreadable(call);
    request->silhouette_rows = silhouette_rows;

    TableRows *const rows = table_call_read(call, function, &query);
    const int64 n = table_call_used(call, rows);

    *count = 0;
    if (n == 0)
        return call;
    table_call_request(call, rows);
    request->k_last = kmeans_sweep_last(request->k, request->k_last, n);
    pgkm_model_check_size(request->k_last, n, table_call_features(call, rows));
    table_call_fit(call);
    *count = request->k_last - request->k + 1;
    return call;
}

/*
 * kmeans_sweep(relation, features, k_min, k_max, options, ..., sample)
 *     -> setof (k, inertia, indices, clusters, n_iter, converged, more indices, suggestion)
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   for k from k_min to k_max, or to the number of rows: fit them and return how good the clusters are,
 *   and beside one k why it is the one to take
 */
Datum pgkm_kmeans_sweep(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    int64 count;
    TableCall *const call = kmeans_sweep_fit(fcinfo, "kmeans_sweep", sample_argument(fcinfo), &count);

    put_results(call, count, target);
    table_call_destroy(call);
    return (Datum)0;
}
