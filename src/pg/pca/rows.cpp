/*
 * rows.cpp - rows transformed by a pca_model and back.
 */
#include <cmath>

#include "pg/pca/pca.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_pca_transform);
PG_FUNCTION_INFO_V1(pgkm_pca_inverse_transform);
}

static const PgkmPcaModel *model_argument(FunctionCallInfo fcinfo)
{
    return pgkm_cached_model<PgkmPcaModel, pgkm_pca_model_read>(fcinfo, 0);
}

/* Rows far from all that the model was fitted to can leave the range of float64. */
static Datum checked_array(const double *values, int32 length)
{
    for (int32 i = 0; i < length; ++i)
        if (!std::isfinite(values[i]))
            float_overflow_error();
    return pgkm_array(values, {length});
}

/* pca_transform(model pca_model, features) -> double precision[]: the n_components scores. */
Datum pgkm_pca_transform(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    const PgkmPcaModel *model = model_argument(fcinfo);
    PgkmElement element;
    double *const row = model_row(fcinfo, 1, model->d, model->fills, &model->columns, &element);

    if (row == NULL)
        PG_RETURN_NULL();

    double *const scores = (double *)palloc(model->n_components * sizeof(double));

    for (int32 f = 0; f < model->d; ++f)
        row[f] = (row[f] - model->mean[f]) / (model->scale == NULL ? 1.0 : model->scale[f]);
    pgkm_dot_products(model->components, model->n_components, model->d, row, scores);
    for (int32 j = 0; j < model->n_components; ++j)
        scores[j] /= model->deviation[j];

    const Datum result = checked_array(scores, model->n_components);

    pfree(scores);
    pfree(row);
    PG_RETURN_DATUM(result);
}

/* pca_inverse_transform(model pca_model, scores) -> double precision[]: the row of those scores. */
Datum pgkm_pca_inverse_transform(PG_FUNCTION_ARGS)
{
    const PgkmPcaModel *model = model_argument(fcinfo);
    double *const scores = pgkm_read_row(fcinfo, 1, model->n_components, "score");

    if (scores == NULL)
        PG_RETURN_NULL();

    double *const row = (double *)palloc0(model->d * sizeof(double));

    for (int32 j = 0; j < model->n_components; ++j)
        scores[j] *= model->deviation[j];
    pgkm_weighted_sum(model->components, model->n_components, model->d, scores, row);
    for (int32 f = 0; f < model->d; ++f)
        row[f] = row[f] * (model->scale == NULL ? 1.0 : model->scale[f]) + model->mean[f];

    const Datum result = checked_array(row, model->d);

    pfree(scores);
    pfree(row);
    PG_RETURN_DATUM(result);
}
