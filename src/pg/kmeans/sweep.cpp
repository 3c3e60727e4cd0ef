/*
 * sweep.cpp - kmeans_sweep: which k suits a table.
 */
#include "pg/fit/sweep.h"

#include "pg/kmeans/model.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_sweep);
}

/* The knee of the inertia by Kneedle (Satopaa et al. 2011): the k whose point lies farthest below the line from the
 * first to the last, of several the first; -1 for none, or where fewer than 3 k have no curve. */
static int64 find_knee(const TableCall *call, int64 count)
{
    const PgkmRequest *const request = &call->request;
    SweepBest knee;
    PgkmResult first, last, result;

    if (count < 3)
        return -1;
    pgkm_result_of(call->job, 0, &first);
    pgkm_result_of(call->job, count - 1, &last);
    for (int64 i = 0; i < count; ++i) {
        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        const double x = (double)(pgkm_sweep_k(request, i) - request->k) / (double)(request->k_last - request->k);
        const double fall = (first.inertia - result.inertia) / (first.inertia - last.inertia);

        knee.consider(i, fall - x);
    }
    return first.inertia > last.inertia && knee.value > 0 ? knee.place : -1;
}

static void put_results(TableCall *call, int64 count, ReturnSetInfo *target)
{
    const int64 knee = find_knee(call, count);

    for (int64 i = 0; i < count; ++i) {
        PgkmResult result;
        const PgkmQuality *const quality = &result.quality;

        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        pgkm_result_put(target,
                        {(int64)pgkm_sweep_k(&call->request, i), result.inertia, index_value(quality->davies_bouldin),
                         index_value(quality->calinski_harabasz), index_value(quality->simplified_silhouette), result.k,
                         result.n_iter, result.converged != 0, index_value(quality->silhouette),
                         index_value(quality->silhouette_error), index_value(quality->bic), result.suggestion,
                         pgkm_value_if(count > 2, i == knee)});
    }
}

/*
 * kmeans_sweep(relation, features, k_min, k_max, options, ..., sample, ks)
 *     -> setof (k, inertia, indices, clusters, n_iter, converged, more indices, suggestion, knee)
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   for k from k_min to k_max, or of ks, up to the number of rows: fit them and return how good the clusters are,
 *   and beside one k why it is the one to take
 */
Datum pgkm_kmeans_sweep(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    int64 count;
    const int64 sample = sweep_sample_argument(fcinfo, SWEEP_NEXT);
    TableCall *const call = sweep_begin(&kmeans_kind, fcinfo, "kmeans_sweep", sample, &count);

    put_results(call, count, target);
    table_call_destroy(call);
    return (Datum)0;
}
