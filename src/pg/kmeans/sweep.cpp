/*
 * sweep.cpp - kmeans_sweep: which k suits a table.
 */
#include "pg/kmeans/sweep.h"

#include <cmath>

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_table_sweep);
}

/* The options are all but init_centroids and the last, init_model, which would fit one k alone. */
static TableCall *read_arguments(FunctionCallInfo fcinfo, int64 *k_max)
{
    NullableDatum fields[PGKM_KMEANS_OPTIONS] = {fcinfo->args[SWEEP_INIT], {0, true}};

    memcpy(fields + 2, fcinfo->args + SWEEP_N_INIT, (PGKM_KMEANS_OPTIONS - 4) * sizeof(NullableDatum));
    fields[PGKM_KMEANS_OPTIONS - 2] = fields[PGKM_KMEANS_OPTIONS - 1] = {0, true};

    TableCall *const call = kmeans_call_create(fields);

    call->request.k = pgkm_k_argument(fcinfo, SWEEP_K_MIN, "k_min");
    *k_max = pgkm_k_argument(fcinfo, SWEEP_K_MAX, "k_max");
    if (*k_max < call->request.k)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k_max must be at least k_min, which is %lld, not %lld", (long long)call->request.k,
                               (long long)*k_max)));
    return call;
}

/* An index that is not defined is NULL. */
static PgkmValue index_value(double value)
{
    return pgkm_value_if(!std::isnan(value), value);
}

static void put_results(TableCall *call, int64 count, ReturnSetInfo *target)
{
    for (int64 i = 0; i < count; ++i) {
        PgkmResult result;

        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        pgkm_result_put(target, {call->request.k + i, result.inertia, index_value(result.quality.davies_bouldin),
                                 index_value(result.quality.calinski_harabasz),
                                 index_value(result.quality.simplified_silhouette), result.k, result.n_iter,
                                 result.converged != 0});
    }
}

TableCall *kmeans_sweep_fit(FunctionCallInfo fcinfo, const char *function, int nulls, int64 *count)
{
    int64 k_max;
    TableCall *const call = read_arguments(fcinfo, &k_max);
    TableQuery query;
    PgkmRequest *request = &call->request;

    table_call_find(call, fcinfo, TABLE_READ, SWEEP_WEIGHT, SWEEP_LOADED, nulls);
    memset(&query, 0, sizeof query);
    query.on_nodes = kmeans_call_suits_nodes(call);

    TableRows *const rows = table_call_read(call, function, &query);
    const int64 n = table_call_used(call, rows);

    *count = 0;
    if (n == 0)
        return call;
    table_call_request(call, rows);
    request->k_last = k_max;
    request->k_last = pgkm_sweep_last(request);
    if (request->k_last < k_max)
        ereport(NOTICE,
                (errmsg("the sweep ends at k = %lld: there are %lld rows", (long long)request->k_last, (long long)n)));
    pgkm_model_check_size(request->k_last, n, table_call_features(call, rows));
    table_call_fit(call, rows);
    *count = request->k_last - request->k + 1;
    return call;
}

/*
 * kmeans_sweep(relation, features, k_min, k_max, ...) -> setof (k, inertia, indices, clusters, n_iter, converged)
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   for k from k_min to k_max, or to the number of rows: fit them and return how good the clusters are
 */
Datum pgkm_table_sweep(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    int64 count;
    TableCall *const call = kmeans_sweep_fit(fcinfo, "kmeans_sweep", SWEEP_NULLS, &count);

    put_results(call, count, target);
    table_call_destroy(call);
    return (Datum)0;
}
