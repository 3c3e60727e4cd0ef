/*
 * rows.cpp - a gmm_model at work: its components as a relation, rows under it.
 */
#include <cmath>

#include "pg/gmm/gmm.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_components);
PG_FUNCTION_INFO_V1(pgkm_gmm_predict);
PG_FUNCTION_INFO_V1(pgkm_gmm_posterior);
PG_FUNCTION_INFO_V1(pgkm_gmm_score);
}

/* A component's mean, in the units of the data. */
static Datum component_mean(const PgkmGmmModel *model, int32 j)
{
    double *const mean = (double *)palloc(model->d * sizeof(double));

    for (int32 f = 0; f < model->d; ++f) {
        const double value = model->mixture.means[(Size)j * model->d + f];

        mean[f] = model->scale == NULL ? value : value * model->scale[f] + model->center[f];
    }

    const Datum array = pgkm_array(mean, {model->d});

    pfree(mean);
    return array;
}

/* Its covariance likewise: a matrix, d variances, or one where that is all features'. */
static Datum component_covariance(const PgkmGmmModel *model, int32 j)
{
    const PgkmCovariance type = model->mixture.covariance_type;
    const int32 d = model->d;
    const bool is_matrix = type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED;
    /* Its own part, or the one that all share. */
    const double *const own =
        model->covariances + (type == PGKM_COVARIANCE_TIED ? 0 : j * pgkm_covariance_size(type, 1, d));

    if (model->scale == NULL)
        return is_matrix ? pgkm_array(own, {d, d}) : pgkm_array(own, {type == PGKM_COVARIANCE_DIAG ? d : 1});

    const int32 rows = is_matrix ? d : 1;
    double *const values = (double *)MemoryContextAllocHuge(CurrentMemoryContext, (Size)rows * d * sizeof(double));

    for (int32 a = 0; a < rows; ++a)
        for (int32 b = 0; b < d; ++b) {
            const double value = type == PGKM_COVARIANCE_SPHERICAL ? own[0] : own[(Size)a * d + b];

            values[(Size)a * d + b] = value * model->scale[is_matrix ? a : b] * model->scale[b];
        }

    const Datum array = is_matrix ? pgkm_array(values, {d, d}) : pgkm_array(values, {d});

    pfree(values);
    return array;
}

/* gmm_components(model gmm_model)
 *     -> setof (component_id integer, weight double precision, mean double precision[], covariance double precision[])
 */
Datum pgkm_gmm_components(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    PgkmGmmModel model;

    pgkm_gmm_fields_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &model);
    for (int32 j = 0; j < model.mixture.k; ++j) {
        const Datum mean = component_mean(&model, j);
        const Datum covariance = component_covariance(&model, j);

        pgkm_result_put(result, {j, model.weights[j], mean, covariance});
        pfree(DatumGetPointer(mean));
        pfree(DatumGetPointer(covariance));
    }
    return (Datum)0;
}

/* What a model says of a row: the k responsibilities are palloc'd; NULL for a NULL row. */
struct RowDensity {
    double *posterior;
    int32 k;
    int32 label;
    double log_density;
};

static RowDensity row_density(FunctionCallInfo fcinfo)
{
    const PgkmGmmModel *const model = pgkm_cached_model<PgkmGmmModel, pgkm_gmm_model_read>(fcinfo, 0);
    PgkmElement element;
    double *const row = pgkm_read_row(&fcinfo->args[1], model->d, "feature", &element, model->fills);
    RowDensity density = {NULL, model->mixture.k, 0, 0};

    if (row == NULL)
        return density;
    pgkm_transform_row(row, model->d, model->center, model->scale, PGKM_L2, element);
    density.posterior = (double *)palloc(density.k * sizeof(double));
    density.log_density = pgkm_mixture_row(&model->mixture, model->d, row, density.posterior, &density.label);
    for (int32 f = 0; model->scale != NULL && f < model->d; ++f)
        density.log_density -= std::log(model->scale[f]);
    /* Rows far from all that the model was fitted to can leave the range of float64. */
    if (unlikely(!std::isfinite(density.log_density)))
        float_overflow_error();
    pfree(row);
    return density;
}

/* gmm_predict(model gmm_model, features) -> integer: the component of the largest posterior, the
 * lowest of several. */
Datum pgkm_gmm_predict(PG_FUNCTION_ARGS)
{
    const RowDensity density = row_density(fcinfo);

    if (density.posterior == NULL)
        PG_RETURN_NULL();
    pfree(density.posterior);
    PG_RETURN_INT32(density.label);
}

/* gmm_posterior(model gmm_model, features) -> double precision[]: the k responsibilities. */
Datum pgkm_gmm_posterior(PG_FUNCTION_ARGS)
{
    const RowDensity density = row_density(fcinfo);

    if (density.posterior == NULL)
        PG_RETURN_NULL();

    const Datum result = pgkm_array(density.posterior, {density.k});

    pfree(density.posterior);
    PG_RETURN_DATUM(result);
}

/* gmm_score(model gmm_model, features) -> double precision: the logarithm of the density. */
Datum pgkm_gmm_score(PG_FUNCTION_ARGS)
{
    const RowDensity density = row_density(fcinfo);

    if (density.posterior == NULL)
        PG_RETURN_NULL();
    pfree(density.posterior);
    PG_RETURN_FLOAT8(density.log_density);
}
