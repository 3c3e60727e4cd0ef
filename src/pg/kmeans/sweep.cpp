/*
 * sweep.cpp - kmeans_sweep: which k suits a table.
 */
#include "pg/kmeans/call.h"

#include <cmath>

#include "pg/kmeans/model.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "miscadmin.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_table_sweep);
}

/* After relation and features. */
enum SweepArgument {
    SWEEP_K_MIN = TABLE_FEATURES + 1,
    SWEEP_K_MAX,
    SWEEP_INIT,
    SWEEP_N_INIT, /* the other options follow in the order of kmeans_options */
    SWEEP_STANDARDIZE = SWEEP_N_INIT + 5,
    SWEEP_WEIGHT,
    SWEEP_LOADED
};

/* The options are all but init_centroids, which would fit one k alone. */
static TableCall *read_arguments(FunctionCallInfo fcinfo, int64 *k_max)
{
    NullableDatum fields[8] = {fcinfo->args[SWEEP_INIT], {0, true}};

    memcpy(fields + 2, fcinfo->args + SWEEP_N_INIT, 6 * sizeof(NullableDatum));

    TableCall *const call = kmeans_call_create(fields);

    call->request.k = pgkm_k_argument(fcinfo, SWEEP_K_MIN, "k_min");
    *k_max = pgkm_k_argument(fcinfo, SWEEP_K_MAX, "k_max");
    if (*k_max < call->request.k)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k_max must be at least k_min, which is %lld, not %lld", (long long) call->request.k,
                               (long long) *k_max)));
    return call;
}

static void set_index(Datum *values, bool *nulls, int column, double value)
{
    nulls[column] = std::isnan(value);
    values[column] = Float8GetDatum(value);
}

static void put_results(TableCall *call, int64 count, ReturnSetInfo *target)
{
    enum { K, INERTIA, DAVIES_BOULDIN, CALINSKI_HARABASZ, SILHOUETTE, CLUSTERS, N_ITER, CONVERGED, COUNT };

    for (int64 i = 0; i < count; ++i) {
        PgkmResult result;
        Datum         values[COUNT];
        bool          nulls[COUNT] = {false};

        CHECK_FOR_INTERRUPTS();
        pgkm_result_of(call->job, i, &result);
        values[K] = Int64GetDatum(call->request.k + i);
        values[INERTIA] = Float8GetDatum(result.inertia);
        set_index(values, nulls, DAVIES_BOULDIN, result.quality.davies_bouldin);
        set_index(values, nulls, CALINSKI_HARABASZ, result.quality.calinski_harabasz);
        set_index(values, nulls, SILHOUETTE, result.quality.simplified_silhouette);
        values[CLUSTERS] = Int32GetDatum(result.k);
        values[N_ITER] = Int32GetDatum(result.n_iter);
        values[CONVERGED] = BoolGetDatum(result.converged != 0);
        tuplestore_putvalues(target->setResult, target->setDesc, values, nulls);
    }
}

/*
 * kmeans_sweep(relation, features, k_min, k_max, ...) -> setof (k, inertia, indices, clusters, n_iter, converged)
 *
 *   rows := SELECT features, weight FROM relation, as the caller; or those that are loaded
 *   for k from k_min to k_max, or to the number of rows: fit them and return how good the clusters are
 */
Datum pgkm_table_sweep(PG_FUNCTION_ARGS)
{
    int64             k_max;
    TableCall *const call = read_arguments(fcinfo, &k_max);
    TableQuery        query;
    PgkmRequest      *request = &call->request;

    InitMaterializedSRF(fcinfo, 0);
    table_call_find(call, fcinfo, TABLE_READ, SWEEP_WEIGHT, SWEEP_LOADED);
    memset(&query, 0, sizeof query);

    TableRows *const rows = table_call_read(call, "kmeans_sweep", &query);

    if (table_rows_used(rows) > 0) {
        table_call_request(call, rows);
        request->k_last = k_max;
        request->k_last = pgkm_sweep_last(request);
        if (request->k_last < k_max)
            ereport(NOTICE, (errmsg("the sweep ends at k = %lld: there are %lld rows", (long long) request->k_last,
                                    (long long) rows->used->n)));
        pgkm_model_check_size(request->k_last, rows->used->n, rows->used->d);
        table_call_fit(call, rows);
        put_results(call, request->k_last - request->k + 1, (ReturnSetInfo *) fcinfo->resultinfo);
    }
    table_call_destroy(call);
    return (Datum) 0;
}
