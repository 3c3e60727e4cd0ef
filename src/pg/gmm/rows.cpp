/*
 * rows.cpp - a gmm_model at work: its components as a relation, rows under it.
 */
#include "pg/compat.h"

#include <cmath>

#include "pg/values/composite_read.h"
#include "pg/values/datum.h"
#include "pg/gmm/gmm.h"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_components);
PG_FUNCTION_INFO_V1(pgkm_gmm_predict);
PG_FUNCTION_INFO_V1(pgkm_gmm_posterior);
PG_FUNCTION_INFO_V1(pgkm_gmm_score);
}

/*
 * gmm_components(model gmm_model) -> (component_id integer, weight double precision,
 *     mean double precision[], covariance double precision[])
 */
Datum pgkm_gmm_components(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const target = (ReturnSetInfo *) fcinfo->resultinfo;
    PgkmGmmModel         model;

    InitMaterializedSRF(fcinfo, 0);
    pgkm_gmm_fields_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &model);
    pgkm_put_components(target->setResult, target->setDesc, model.mixture.covariance_type, model.mixture.k, model.d,
                        model.weights, model.mixture.means, model.covariances);
    return (Datum) 0;
}

/* What a model says of a row: the k responsibilities are palloc'd; NULL for a NULL row. */
struct RowDensity {
    double *posterior;
    int32   k;
    int32   label;
    double  log_density;
};

static RowDensity row_density(FunctionCallInfo fcinfo)
{
    const PgkmGmmModel *model =
        (const PgkmGmmModel *) pgkm_cached_model(fcinfo, 0, sizeof(PgkmGmmModel), pgkm_gmm_model_read);
    double *const row = (double *) palloc(model->d * sizeof(double));
    PgkmRowFault  fault;
    RowDensity    density;

    if (!pgkm_read_row(PG_GETARG_DATUM(1), PGKM_FLOAT64, model->d, row, &fault)) {
        if (fault.kind == PGKM_ROW_NULL)
            return {NULL, 0, 0, 0};
        pgkm_raise_row_fault(&fault, NULL);
    }
    density.k = model->mixture.k;
    density.posterior = (double *) palloc(density.k * sizeof(double));
    density.log_density = pgkm_mixture_row(&model->mixture, model->d, row, density.posterior, &density.label);
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

    const Datum result = pgkm_float8_array(density.posterior, density.k, 0);

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
