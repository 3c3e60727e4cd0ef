/*
 * model.cpp - gmm_model: made by the engine's job, unpacked for the row functions.
 */
#include "pg/gmm/gmm.h"

#include <cmath>

#include "pg/compat.h"
#include "pg/values/composite.h"
#include "pg/values/composite_read.h"
#include "pg/values/datum.h"
#include "pg/progress.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

enum GmmModelField {
    GMM_K,
    GMM_D,
    GMM_COVARIANCE_TYPE,
    GMM_WEIGHTS,
    GMM_MEANS,
    GMM_COVARIANCES,
    GMM_LOG_LIKELIHOOD,
    GMM_TRACE,
    GMM_N_ITER,
    GMM_CONVERGED,
    GMM_AIC,
    GMM_BIC,
    GMM_N,
    GMM_SEED,
    GMM_COUNT
};

static const Oid field_types[GMM_COUNT] = {INT4OID,        INT4OID,   TEXTOID,        FLOAT8ARRAYOID, FLOAT8ARRAYOID,
                                           FLOAT8ARRAYOID, FLOAT8OID, FLOAT8ARRAYOID, INT4OID,        BOOLOID,
                                           FLOAT8OID,      FLOAT8OID, INT8OID,        INT8OID};
static const PgkmCompositeType model_type = {"gmm_model", field_types, GMM_COUNT};

TupleDesc pgkm_gmm_model_tupdesc(FunctionCallInfo fcinfo)
{
    return pgkm_result_tupdesc(fcinfo, &model_type);
}

/* The covariances in the shape that their type gives them, as PgkmGiven has shapes. */
static Datum covariance_array(PgkmCovariance type, int32 k, int32 d, const double *values)
{
    switch (type) {
    case PGKM_COVARIANCE_FULL:
        return pgkm_float8_cube(values, k, d, d);
    case PGKM_COVARIANCE_TIED:
        return pgkm_float8_array(values, d, d);
    case PGKM_COVARIANCE_DIAG:
        return pgkm_float8_array(values, k, d);
    case PGKM_COVARIANCE_SPHERICAL:
        break;
    }
    return pgkm_float8_array(values, k, 0);
}

Datum pgkm_gmm_model_build(const PgkmResult *result, const PgkmMixtureOptions *options, TupleDesc tupdesc)
{
    Datum values[GMM_COUNT] = {0};
    bool  nulls[GMM_COUNT] = {false};

    values[GMM_K] = Int32GetDatum(result->k);
    values[GMM_D] = Int32GetDatum(result->d);
    values[GMM_COVARIANCE_TYPE] = CStringGetTextDatum(pgkm_covariance_name(options->covariance_type));
    values[GMM_WEIGHTS] = pgkm_float8_array(result->weights, result->k, 0);
    values[GMM_MEANS] = pgkm_float8_array(result->means, result->k, result->d);
    values[GMM_COVARIANCES] = covariance_array(options->covariance_type, result->k, result->d, result->covariances);
    values[GMM_LOG_LIKELIHOOD] = Float8GetDatum(result->log_likelihood);
    values[GMM_TRACE] = pgkm_float8_array(result->trace, result->n_iter, 0);
    values[GMM_N_ITER] = Int32GetDatum(result->n_iter);
    values[GMM_CONVERGED] = BoolGetDatum(result->converged != 0);
    values[GMM_AIC] = Float8GetDatum(result->aic);
    values[GMM_BIC] = Float8GetDatum(result->bic);
    values[GMM_N] = Int64GetDatum(result->n);
    values[GMM_SEED] = Int64GetDatum((int64) options->seed);
    return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}

void pgkm_put_components(Tuplestorestate *store, TupleDesc tupdesc, PgkmCovariance type, int32 k, int32 d,
                         const double *weights, const double *means, const double *covariances)
{
    enum { ID, WEIGHT, MEAN, COVARIANCE, COUNT };

    for (int32 j = 0; j < k; ++j) {
        /* Its own part, or the one that all share. */
        const double *own = covariances + (type == PGKM_COVARIANCE_TIED ? 0 : j * pgkm_covariance_size(type, 1, d));
        const bool    is_matrix = type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED;
        Datum         values[COUNT];
        bool          nulls[COUNT] = {false};

        values[ID] = Int32GetDatum(j);
        values[WEIGHT] = Float8GetDatum(weights[j]);
        values[MEAN] = pgkm_float8_array(means + (Size) j * d, d, 0);
        values[COVARIANCE] = is_matrix ? pgkm_float8_array(own, d, d)
                                       : pgkm_float8_array(own, type == PGKM_COVARIANCE_DIAG ? d : 1, 0);
        tuplestore_putvalues(store, tupdesc, values, nulls);
        pfree(DatumGetPointer(values[MEAN]));
        pfree(DatumGetPointer(values[COVARIANCE]));
    }
}

void pgkm_mixture_check_size(const PgkmRequest *request)
{
    const double k = (double) Min(request->k, request->points.n);
    const double d = request->points.d;
    const bool   square = request->mixture.covariance_type == PGKM_COVARIANCE_FULL;
    const double values = k * (2 + d + (square ? d * d : d)) + d * d + 100;

    if (values > (double) (MaxAllocSize / sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a mixture of %lld components of %d features exceeds the maximum size of a value",
                               (long long) request->k, request->points.d)));
}

static int32 read_extent(const PgkmFields *fields, GmmModelField field)
{
    const int32 extent = fields->nulls[field] ? 0 : DatumGetInt32(fields->values[field]);

    if (extent < 1)
        pgkm_raise_fields(fields, "Fields k and d must be at least 1.");
    return extent;
}

static PgkmCovariance read_type(const PgkmFields *fields)
{
    PgkmCovariance type;

    if (fields->nulls[GMM_COVARIANCE_TYPE] ||
        !pgkm_covariance_from_name(TextDatumGetCString(fields->values[GMM_COVARIANCE_TYPE]), &type))
        pgkm_raise_fields(fields, "Field covariance_type must be 'full', 'tied', 'diag' or 'spherical'.");
    return type;
}

static const double *read_covariances(const PgkmFields *fields, PgkmCovariance type, int32 k, int32 d)
{
    static const char problem[] = "Field covariances must hold finite values in the shape of its type.";

    switch (type) {
    case PGKM_COVARIANCE_FULL:
        return pgkm_field_numbers(fields, GMM_COVARIANCES, problem, k, d, d);
    case PGKM_COVARIANCE_TIED:
        return pgkm_field_numbers(fields, GMM_COVARIANCES, problem, 0, d, d);
    case PGKM_COVARIANCE_DIAG:
        return pgkm_field_numbers(fields, GMM_COVARIANCES, problem, 0, k, d);
    case PGKM_COVARIANCE_SPHERICAL:
        break;
    }
    return pgkm_field_numbers(fields, GMM_COVARIANCES, problem, 0, k, 0);
}

static const double *read_log_weights(const PgkmFields *fields, const double *weights, int32 k)
{
    double *const logarithms = (double *) MemoryContextAlloc(fields->context, k * sizeof(double));
    bool          any = false;

    for (int32 j = 0; j < k; ++j) {
        if (weights[j] < 0)
            pgkm_raise_fields(fields, "Field weights must hold k values of at least 0.");
        any = any || weights[j] > 0;
        logarithms[j] = std::log(weights[j]);
    }
    if (!any)
        pgkm_raise_fields(fields, "Field weights must hold a value above 0.");
    return logarithms;
}

void pgkm_gmm_fields_read(Datum composite, MemoryContext context, PgkmGmmModel *model)
{
    PgkmMixture *const mixture = &model->mixture;
    Datum              values[GMM_COUNT];
    bool               nulls[GMM_COUNT];
    const PgkmFields   fields = {model_type.name, values, nulls, context};

    pgkm_read_composite(composite, &model_type, values, nulls);
    memset(model, 0, sizeof *model);
    mixture->k = read_extent(&fields, GMM_K);
    model->d = read_extent(&fields, GMM_D);
    mixture->covariance_type = read_type(&fields);
    model->weights = pgkm_field_numbers(&fields, GMM_WEIGHTS, "Field weights must hold k values of at least 0.", 0,
                                        mixture->k, 0);
    mixture->log_weights = read_log_weights(&fields, model->weights, mixture->k);
    mixture->means = pgkm_field_numbers(&fields, GMM_MEANS, "Field means must hold k x d finite values.", 0,
                                        mixture->k, model->d);
    model->covariances = read_covariances(&fields, mixture->covariance_type, mixture->k, model->d);
}

void pgkm_gmm_model_read(Datum composite, MemoryContext context, void *out)
{
    PgkmGmmModel *const model = (PgkmGmmModel *) out;
    PgkmMixture *const  mixture = &model->mixture;
    PgkmError           error;

    pgkm_gmm_fields_read(composite, context, model);

    const int64   size = pgkm_covariance_size(mixture->covariance_type, mixture->k, model->d);
    double *const factors = (double *) MemoryContextAllocHuge(context, size * sizeof(double));
    double *const determinants = (double *) MemoryContextAlloc(context, mixture->k * sizeof(double));

    if (pgkm_mixture_factors(mixture->covariance_type, mixture->k, model->d, model->covariances, factors,
                             determinants, pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error);
    mixture->factors = factors;
    mixture->log_determinants = determinants;
}
