/*
 * rows.cpp - a pca_model at work: its components as a relation, rows transformed and back.
 */
#include "pg/compat.h"

#include <cmath>

#include "pg/values/composite_read.h"
#include "pg/values/datum.h"
#include "pg/pca/pca.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/float.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(pgkm_pca_components);
PG_FUNCTION_INFO_V1(pgkm_pca_transform);
PG_FUNCTION_INFO_V1(pgkm_pca_inverse_transform);
}

/*
 * pca_components(model pca_model) -> (component_id integer, component double precision[],
 *     explained_variance, explained_variance_ratio, singular_value double precision)
 */
Datum pgkm_pca_components(PG_FUNCTION_ARGS)
{
    enum { ID, COMPONENT, VARIANCE, RATIO, SINGULAR, COUNT };
    ReturnSetInfo *const target = (ReturnSetInfo *) fcinfo->resultinfo;
    PgkmPcaModel         model;

    InitMaterializedSRF(fcinfo, 0);
    pgkm_pca_model_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &model);
    for (int32 j = 0; j < model.n_components; ++j) {
        Datum values[COUNT];
        bool  nulls[COUNT] = {false};

        values[ID] = Int32GetDatum(j);
        values[COMPONENT] = pgkm_float8_array(model.components + (Size) j * model.d, model.d, 0);
        values[VARIANCE] = Float8GetDatum(model.explained_variance[j]);
        values[RATIO] = Float8GetDatum(model.explained_variance_ratio[j]);
        values[SINGULAR] = Float8GetDatum(model.singular_values[j]);
        tuplestore_putvalues(target->setResult, target->setDesc, values, nulls);
        pfree(DatumGetPointer(values[COMPONENT]));
    }
    return (Datum) 0;
}

static const PgkmPcaModel *model_argument(FunctionCallInfo fcinfo)
{
    return (const PgkmPcaModel *) pgkm_cached_model(fcinfo, 0, sizeof(PgkmPcaModel), pgkm_pca_model_read);
}

/* Features, or scores; NULL for a NULL row. */
static double *numbers_argument(FunctionCallInfo fcinfo, int32 length, bool scores)
{
    double *const numbers = (double *) palloc(length * sizeof(double));
    PgkmRowFault  fault;

    if (pgkm_read_row(PG_GETARG_DATUM(1), PGKM_FLOAT64, length, numbers, &fault))
        return numbers;
    if (fault.kind == PGKM_ROW_NULL)
        return NULL;
    if (scores)
        pgkm_raise_score_fault(&fault);
    pgkm_raise_row_fault(&fault, NULL);
}

/* Rows far from all that the model was fitted to can leave the range of float64. */
static Datum checked_array(const double *values, int32 length)
{
    for (int32 i = 0; i < length; ++i)
        if (!std::isfinite(values[i]))
            float_overflow_error();
    return pgkm_float8_array(values, length, 0);
}

/* pca_transform(model pca_model, features) -> double precision[]: the n_components scores. */
Datum pgkm_pca_transform(PG_FUNCTION_ARGS)
{
    const PgkmPcaModel *model = model_argument(fcinfo);
    double *const       row = numbers_argument(fcinfo, model->d, false);

    if (row == NULL)
        PG_RETURN_NULL();

    double *const scores = (double *) palloc(model->n_components * sizeof(double));

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
    double *const       scores = numbers_argument(fcinfo, model->n_components, true);

    if (scores == NULL)
        PG_RETURN_NULL();

    double *const row = (double *) palloc0(model->d * sizeof(double));

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
