/*
 * predict.cpp - new rows against a model: kmeans_predict, kmeans_distance, kmeans_transform.
 *
 * Distances are Euclidean for metric l2 and 1 - cosine for metric cosine: half the squared
 * distance of unit vectors.
 */
#include "pg/compat.h"

#include <algorithm>
#include <cmath>

#include "pg/kmeans/model.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_predict);
PG_FUNCTION_INFO_V1(pgkm_kmeans_distance);
PG_FUNCTION_INFO_V1(pgkm_kmeans_transform);
}

enum RowArgument { ARGUMENT_MODEL, ARGUMENT_FEATURES };

double *pgkm_model_row(FunctionCallInfo fcinfo, int number, const PgkmModel *model, int behind)
{
    PgkmElement element;
    double *const row = model_row(fcinfo, number, model->d, model->fills, &model->columns, &element, behind);

    if (row != NULL)
        pgkm_model_place(model, element, row);
    return row;
}

void pgkm_model_place(const PgkmModel *model, PgkmElement element, double *row, int64 number)
{
    const auto is_bit = [](double value) { return value == 0 || value == 1; };

    if (model->metric == PGKM_HAMMING && !std::all_of(row, row + model->d, is_bit))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("features must be bits, or zeros and ones, for metric hamming")));
    if (!pgkm_transform_row(row, model->d, model->center, model->scale, model->metric, element))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("features are a zero vector, which has no direction for metric cosine"),
                        number == 0 ? 0 : errdetail("It is row %lld of those that are used.", (long long)number)));
}

double pgkm_model_distance(double square, PgkmMetric metric)
{
    /* Rows far from all that the model was fitted to can leave the range of float64. */
    if (unlikely(!std::isfinite(square)))
        float_overflow_error();
    return fit_distance(square, metric);
}

/* False for a NULL row. */
static bool nearest(FunctionCallInfo fcinfo, int32 *label, double *distance)
{
    if (PG_ARGISNULL(ARGUMENT_MODEL))
        return false;

    const PgkmModel *model = pgkm_cached_model<PgkmModel, pgkm_model_read>(fcinfo, ARGUMENT_MODEL);
    double *const row = pgkm_model_row(fcinfo, ARGUMENT_FEATURES, model);
    double square;

    if (row == NULL)
        return false;
    pgkm_nearest(row, model->centroids, model->k, model->d, label, &square);
    *distance = pgkm_model_distance(square, model->metric);
    pfree(row);
    return true;
}

/*
 * kmeans_predict(model kmeans_model, features) -> integer: the nearest cluster, the lowest
 * of several. 2202E when the row's length is not the model's d; 22023 for a malformed model.
 */
Datum pgkm_kmeans_predict(PG_FUNCTION_ARGS)
{
    int32 label;
    double distance;

    if (!nearest(fcinfo, &label, &distance))
        PG_RETURN_NULL();
    PG_RETURN_INT32(label);
}

/* kmeans_distance(model kmeans_model, features) -> double precision: to the nearest centroid. */
Datum pgkm_kmeans_distance(PG_FUNCTION_ARGS)
{
    int32 label;
    double distance;

    if (!nearest(fcinfo, &label, &distance))
        PG_RETURN_NULL();
    PG_RETURN_FLOAT8(distance);
}

/* kmeans_transform(model kmeans_model, features) -> double precision[]: to all k centroids. */
Datum pgkm_kmeans_transform(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(ARGUMENT_MODEL))
        PG_RETURN_NULL();

    const PgkmModel *model = pgkm_cached_model<PgkmModel, pgkm_model_read>(fcinfo, ARGUMENT_MODEL);
    double *const row = pgkm_model_row(fcinfo, ARGUMENT_FEATURES, model);

    if (row == NULL)
        PG_RETURN_NULL();

    double *const distances = (double *)palloc(model->k * sizeof(double));

    pgkm_distances(row, model->centroids, model->k, model->d, distances);
    for (int32 j = 0; j < model->k; ++j)
        distances[j] = pgkm_model_distance(distances[j], model->metric);

    const Datum result = pgkm_array(distances, {model->k});

    pfree(distances);
    pfree(row);
    PG_RETURN_DATUM(result);
}
