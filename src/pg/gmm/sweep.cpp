/*
 * sweep.cpp - gmm_sweep: how many components suit a table.
 */
#include "pg/table/call.h"

#include "pg/gmm/gmm.h"
#include "pg/kmeans/sweep.h"
#include "pg/nodes/nodes.h"
#include "pg/run/fit_count.h"
#include "pg/scan/scan.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_table_sweep);
}

/* A fit of one k. */
struct Fitted {
    double log_likelihood;
    double aic;
    double bic;
    int32 components;
    int32 n_iter;
    bool converged;
};

/* 54000 before any fit, if that of the most components cannot be. */
static void require_memory(TableCall *call, const TableRows *rows, int64 k_max)
{
    table_call_request(call, rows);
    call->request.k = k_max;
    pgkm_require_memory(&call->request);
}

static Fitted fit(TableCall *call, const TableRows *rows, int64 k, PgkmFitCount *finished)
{
    table_call_request(call, rows);
    call->request.k = k;

    const PgkmResult *const result = pgkm_run_job(&call->request, call->context, &call->job, NULL);

    if (call->nodes != NULL)
        nodes_rest(call->nodes);
    pgkm_count_fit(finished, &call->request, result);
    return {result->log_likelihood, result->aic, result->bic, result->k, result->n_iter, result->converged != 0};
}

static void put_fits(const Fitted *fits, int64 k_min, int64 count, ReturnSetInfo *target)
{
    int64 best = 0;

    for (int64 i = 1; i < count; ++i)
        if (fits[i].bic < fits[best].bic)
            best = i;
    for (int64 i = 0; i < count; ++i)
        pgkm_result_put(target, {k_min + i, fits[i].log_likelihood, fits[i].aic, fits[i].bic, fits[i].components,
                                 fits[i].n_iter, fits[i].converged, i == best ? "lowest BIC" : NULL});
}

/*
 * gmm_sweep(relation, features, k_min, k_max, options, ...)
 *     -> setof (k, log_likelihood, aic, bic, components, n_iter, converged, suggestion)
 *
 *   rows := SELECT features FROM relation, as the caller; or those that are loaded
 *   for k from k_min to k_max, or to the number of rows: fit a mixture, and return how well it describes the rows
 */
Datum pgkm_gmm_table_sweep(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = pgkm_result_begin(fcinfo);
    TableCall *const call = pgkm_gmm_call_create(table_arguments(fcinfo, SWEEP_OPTIONS), "gmm_sweep",
                                                 {"weights_init", "means_init", "precisions_init"}); /* of one k */
    PgkmFitCount finished = {};
    TableQuery query = {};
    int64 k_max;
    const int64 k_min = kmeans_sweep_range(fcinfo, &k_max);

    query.on_nodes = true;
    table_call_find(call, TABLE_READ);

    TableRows *const rows = table_call_read(call, "gmm_sweep", &query);
    const int64 n = table_call_used(call, rows);

    if (n > 0) {
        k_max = kmeans_sweep_last(k_min, k_max, n);

        Fitted *const fits = (Fitted *)MemoryContextAllocHuge(call->context, (k_max - k_min + 1) * sizeof(Fitted));

        table_call_keep_rows(call);
        require_memory(call, rows, k_max);
        for (int64 k = k_min; k <= k_max; ++k)
            fits[k - k_min] = fit(call, rows, k, &finished);
        pgkm_warn_counted(&finished);
        put_fits(fits, k_min, k_max - k_min + 1, target);
    }
    table_call_destroy(call);
    return (Datum)0;
}
