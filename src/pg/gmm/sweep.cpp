/*
 * sweep.cpp - gmm_sweep: how many components suit a table.
 */
#include "pg/fit/sweep.h"

#include "pg/gmm/gmm.h"
#include "pg/nodes/nodes.h"
#include "pg/run/fit_count.h"
#include "pg/values/composite.h"

extern "C" {
PG_FUNCTION_INFO_V1(pgkm_gmm_table_sweep);
}

static void put_fits(const PgkmResult *fits, const PgkmRequest *sweep, int64 count, ReturnSetInfo *target)
{
    SweepBest best;

    for (int64 i = 0; i < count; ++i)
        best.consider(i, -fits[i].bic);
    for (int64 i = 0; i < count; ++i)
        pgkm_result_put(target,
                        {(int64)pgkm_sweep_k(sweep, i), fits[i].log_likelihood, fits[i].aic, fits[i].bic, fits[i].k,
                         fits[i].n_iter, fits[i].converged != 0, i == best.place ? "lowest BIC" : NULL});
}

/*
 * gmm_sweep(relation, features, k_min, k_max, options, ..., ks)
 *     -> setof (k, log_likelihood, aic, bic, components, n_iter, converged, suggestion)
 *
 *   rows := SELECT features FROM relation, as the caller; or those that are loaded
 *   for k from k_min to k_max, or of ks, up to the number of rows: fit a mixture, and return how well it describes the
 * rows
 */
Datum pgkm_gmm_table_sweep(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    int64 count;
    TableCall *const call = sweep_begin(&gmm_kind, fcinfo, "gmm_sweep", 0, &count);
    PgkmRequest *const request = &call->request;
    PgkmResult *const fits = (PgkmResult *)MemoryContextAllocHuge(call->context, (count + 1) * sizeof(PgkmResult));
    const PgkmRequest sweep = *request;
    PgkmFitCount finished = {};

    /* 54000 before any fit, if that of the most components cannot be. */
    request->k = request->k_last;
    request->k_last = 0;
    if (count > 0)
        pgkm_require_memory(request);
    for (int64 i = 0; i < count; ++i) {
        request->k = pgkm_sweep_k(&sweep, i);
        fits[i] = *pgkm_run_job(request, call->context, &call->job, NULL); /* its arrays go with the next job */
        if (call->nodes != NULL)
            nodes_rest(call->nodes);
        pgkm_count_fit(&finished, request, &fits[i]);
    }
    pgkm_warn_counted(&finished);
    put_fits(fits, &sweep, count, target);
    table_call_destroy(call);
    return (Datum)0;
}
