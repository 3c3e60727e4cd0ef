/*
 * model.cpp - kmeans_model: built from a fit's result, unpacked for the row functions.
 */
#include "pg/kmeans/model.h"

#include <cmath>

#include "pg/compat.h"
#include "pg/values/datum.h"
#include "pg/kmeans/model_fields.h"
#include "pg/kmeans/options.h"

extern "C" {
#include "access/htup_details.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/memutils.h"
}

TupleDesc pgkm_model_tupdesc(FunctionCallInfo fcinfo)
{
    return pgkm_result_tupdesc(fcinfo, &pgkm_model_type);
}

void pgkm_model_check_size(int64 k, int64 n, int32 d)
{
    const int64 clusters = Min(k, n);
    /* Sizes and sums beside the centroids, center and scale, and what headers take. */
    const int64 values = clusters * ((int64) d + 2) + 2 * (int64) d + 100;

    if (values > (int64) (MaxAllocSize / sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a model of %lld clusters of %d features exceeds the maximum size of a value",
                               (long long) clusters, d)));
}

Datum pgkm_model_build(const PgkmResult *result, const PgkmOptions *options, TupleDesc tupdesc)
{
    Datum      values[MODEL_COUNT] = {0};
    bool       nulls[MODEL_COUNT] = {false};
    const bool standardized = result->center != NULL;

    /* No field is NULL, so that `model IS NOT NULL` tells whether there is a model. */
    values[MODEL_K] = Int32GetDatum(result->k);
    values[MODEL_D] = Int32GetDatum(result->d);
    values[MODEL_CENTROIDS] = pgkm_float8_array(result->centroids, result->k, result->d);
    values[MODEL_SIZE] = pgkm_int8_array(result->sizes, result->k);
    values[MODEL_WITHIN_SS] = pgkm_float8_array(result->within_ss, result->k, 0);
    values[MODEL_INERTIA] = Float8GetDatum(result->inertia);
    values[MODEL_N_ITER] = Int32GetDatum(result->n_iter);
    values[MODEL_CONVERGED] = BoolGetDatum(result->converged != 0);
    values[MODEL_N] = Int64GetDatum(result->n);
    values[MODEL_METRIC] = CStringGetTextDatum(pgkm_metric_name(options->metric));
    values[MODEL_SEED] = Int64GetDatum((int64) options->seed);
    values[MODEL_CENTER] =
        standardized ? pgkm_float8_array(result->center, result->d, 0) : pgkm_float8_fill(0, result->d);
    values[MODEL_SCALE] =
        standardized ? pgkm_float8_array(result->scale, result->d, 0) : pgkm_float8_fill(1, result->d);
    return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}

void pgkm_model_of_result(const PgkmResult *result, PgkmMetric metric, PgkmModel *model)
{
    model->k = result->k;
    model->d = result->d;
    model->metric = metric;
    model->centroids = result->centroids;
    model->sizes = result->sizes;
    model->within_ss = result->within_ss;
    model->center = result->center;
    model->scale = result->scale;
}

/* In the units of the data: the standardization is undone, as far as that has a finite value. */
static void write_centroid(const PgkmModel *model, const double *row, double *centroid)
{
    for (int32 f = 0; f < model->d; ++f) {
        centroid[f] = model->center != NULL ? row[f] * model->scale[f] + model->center[f] : row[f];
        if (unlikely(!std::isfinite(centroid[f])))
            float_overflow_error();
    }
}

void pgkm_put_centroids(Tuplestorestate *store, TupleDesc tupdesc, const PgkmModel *model)
{
    enum { CLUSTER_ID, CENTROID, SIZE, WITHIN_SS, COUNT };
    double *centroid = (double *) palloc(model->d * sizeof(double));

    for (int32 j = 0; j < model->k; ++j) {
        const double *row = model->centroids + (Size) j * model->d;
        Datum         values[COUNT];
        bool          nulls[COUNT] = {false};

        write_centroid(model, row, centroid);
        values[CLUSTER_ID] = Int32GetDatum(j);
        values[CENTROID] = pgkm_float8_array(centroid, model->d, 0);
        values[SIZE] = Int64GetDatum(model->sizes[j]);
        values[WITHIN_SS] = Float8GetDatum(model->within_ss[j]);
        tuplestore_putvalues(store, tupdesc, values, nulls);
        pfree(DatumGetPointer(values[CENTROID]));
    }
    pfree(centroid);
}
