/*
 * rows.cpp - rows under a gmm_model.
 */
#include <algorithm>
#include <cmath>

#include "pg/gmm/gmm.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_predict);
PG_FUNCTION_INFO_V1(pgkm_gmm_posterior);
PG_FUNCTION_INFO_V1(pgkm_gmm_score);
}

double *pgkm_gmm_model_row(FunctionCallInfo fcinfo, int number, const PgkmGmmModel *model)
{
    PgkmElement element;
    double *const row = model_row(fcinfo, number, model->d, model->fills, &model->columns, &element);

    if (row != NULL)
        pgkm_transform_row(row, model->d, model->center, model->scale, PGKM_L2, element);
    return row;
}

bool pgkm_lacks_values(const double *row, int32 d)
{
    return std::any_of(row, row + d, [](double value) { return std::isnan(value); });
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
    if (PG_ARGISNULL(0))
        return {NULL, 0, 0, 0};

    const PgkmGmmModel *const model = pgkm_cached_model<PgkmGmmModel, pgkm_gmm_model_read>(fcinfo, 0);
    double *const row = pgkm_gmm_model_row(fcinfo, 1, model);
    RowDensity density = {NULL, model->mixture.k, 0, 0};

    if (row == NULL)
        return density;
    density.posterior = (double *)palloc(density.k * sizeof(double));
    if (pgkm_lacks_values(row, model->d)) {
        PgkmError error;

        if (pgkm_mixture_incomplete_row(&model->mixture, model->covariances, model->d, row, density.posterior,
                                        &density.label, &density.log_density, &error) != PGKM_OK)
            pgkm_raise(&error);
    } else {
        density.log_density = pgkm_mixture_row(&model->mixture, model->d, row, density.posterior, &density.label);
    }
    for (int32 f = 0; model->scale != NULL && f < model->d; ++f)
        if (!std::isnan(row[f]))
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
