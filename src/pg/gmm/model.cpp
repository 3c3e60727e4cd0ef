/*
 * model.cpp - gmm_model: made by the engine's job, unpacked for the row functions.
 */
#include "pg/gmm/gmm.h"

#include <algorithm>
#include <cmath>

#include "pg/progress.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/float.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_checked);
}

static const PgkmField fields[] = {{"k", INT4OID},
                                   {"d", INT4OID},
                                   {"covariance_type", TEXTOID},
                                   {"weights", FLOAT8ARRAYOID},
                                   {"means", FLOAT8ARRAYOID},
                                   {"covariances", FLOAT8ARRAYOID},
                                   {"log_likelihood", FLOAT8OID},
                                   {"trace", FLOAT8ARRAYOID},
                                   {"n_iter", INT4OID},
                                   {"converged", BOOLOID},
                                   {"aic", FLOAT8OID},
                                   {"bic", FLOAT8OID},
                                   {"n", INT8OID},
                                   {"seed", INT8OID},
                                   {"center", FLOAT8ARRAYOID},
                                   {"scale", FLOAT8ARRAYOID},
                                   {"fills", FLOAT8ARRAYOID},
                                   {"origin", InvalidOid},
                                   {"mass", FLOAT8OID}};
static const PgkmCompositeType model_type = {"gmm_model", fields, lengthof(fields), 3};

TupleDesc pgkm_gmm_model_tupdesc(FunctionCallInfo fcinfo)
{
    return origin_tupdesc(fcinfo, &model_type);
}

/* The shape of all covariances, as scikit-learn has it. */
static PgkmShape covariances_shape(PgkmCovariance type, int32 k, int32 d)
{
    PgkmShape shape = {};

    shape.dimensions = pgkm_covariance_shape(type, k, d, shape.extents);
    return shape;
}

Datum pgkm_gmm_model_of_fit(const PgkmResult *result, const PgkmRequest *request, const TableCall *call,
                            TupleDesc tupdesc)
{
    const PgkmMixtureOptions *const options = &request->mixture;
    const int32 k = result->k;
    const int32 d = result->d;

    return pgkm_composite_make(tupdesc,
                               {k, d, pgkm_word_of(&pgkm_covariances, options->covariance_type),
                                pgkm_array(result->weights, {k}), pgkm_array(result->means, {k, d}),
                                pgkm_array(result->covariances, covariances_shape(options->covariance_type, k, d)),
                                result->log_likelihood, pgkm_array(result->trace, {result->n_iter}), result->n_iter,
                                result->converged != 0, result->aic, result->bic, result->n, (int64)options->seed,
                                pgkm_array_or_empty(result->center, d), pgkm_array_or_empty(result->scale, d),
                                pgkm_array_or_empty(call == NULL ? NULL : call->fills, d),
                                origin_build(tupdesc, &gmm_kind, options, call, NULL, NULL, d), (double)result->n});
}

void pgkm_gmm_check_size(const PgkmRequest *request, int64 k, int64 n)
{
    const double components = (double)Min(k, n);
    const double d = request->points.d;
    const bool square = request->mixture.covariance_type == PGKM_COVARIANCE_FULL;
    const double values = components * (2 + d + (square ? d * d : d)) + d * d + 3 * d + 100;

    if (values > (double)(MaxAllocSize / sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a mixture of %s of %s exceeds the maximum size of a value",
                               pgkm_counted(k, "component"), pgkm_counted(request->points.d, "feature"))));
}

static const double *read_log_weights(const PgkmModelFields *from, const double *weights, int32 k)
{
    const MemoryContext context = from->context == NULL ? CurrentMemoryContext : from->context;
    double *const logarithms = (double *)MemoryContextAlloc(context, k * sizeof(double));
    bool any = false;

    for (int32 j = 0; j < k; ++j) {
        if (weights[j] < 0)
            pgkm_raise_field(from, "weights", "hold k values of at least 0");
        any = any || weights[j] > 0;
        logarithms[j] = std::log(weights[j]);
    }
    if (!any)
        pgkm_raise_field(from, "weights", "hold a value above 0");
    return logarithms;
}

/* As many as there are rows, unless the model says otherwise. */
static double read_mass(const PgkmModelFields *from)
{
    const NullableDatum *const mass = pgkm_model_field(from, "mass");
    const NullableDatum *const n = pgkm_model_field(from, "n");

    if (mass->isnull)
        return n->isnull ? 0 : Max((double)DatumGetInt64(n->value), 0.0);
    if (!(DatumGetFloat8(mass->value) >= 0) || !std::isfinite(DatumGetFloat8(mass->value)))
        pgkm_raise_field(from, "mass", "be a finite number of at least 0");
    return DatumGetFloat8(mass->value);
}

/* d values in the place of NULLs: NaN, unless means stood there in the fit, where it estimated what was missing. */
static const double *read_fills(const PgkmModelFields *from, int32 d)
{
    const double *const fills = pgkm_model_fills(from, d);

    if (fills != NULL || !origin_estimates_missing(from))
        return fills;

    const MemoryContext context = from->context == NULL ? CurrentMemoryContext : from->context;
    double *const missing = (double *)MemoryContextAlloc(context, d * sizeof(double));

    return std::fill_n(missing, d, get_float8_nan()) - d;
}

/* All but the factors, which take long where there are many features. */
static void read_fields(Datum composite, MemoryContext context, PgkmGmmModel *model)
{
    PgkmMixture *const mixture = &model->mixture;
    PgkmModelFields from;

    pgkm_model_open(composite, &model_type, context, &from);
    memset(model, 0, sizeof *model);
    pgkm_model_extents(&from, &mixture->k, &model->d);
    mixture->covariance_type = (PgkmCovariance)pgkm_model_word(&from, "covariance_type", &pgkm_covariances);
    model->weights = pgkm_model_numbers(&from, "weights", "hold k values of at least 0", {mixture->k});
    mixture->log_weights = read_log_weights(&from, model->weights, mixture->k);
    mixture->means = pgkm_model_numbers(&from, "means", "hold k x d finite values", {mixture->k, model->d});
    model->covariances = pgkm_model_numbers(&from, "covariances", "hold finite values in the shape of its type",
                                            covariances_shape(mixture->covariance_type, mixture->k, model->d));
    model->mass = read_mass(&from);
    pgkm_model_units(&from, model->d, &model->center, &model->scale);
    model->fills = read_fills(&from, model->d);
    model->columns = model_columns(&model_type, context);
}

Origin pgkm_gmm_model_origin(Datum composite)
{
    return origin_of(composite, &model_type);
}

void pgkm_gmm_model_give(Datum composite, MemoryContext context, void *to)
{
    PgkmGivenModel *const given = (PgkmGivenModel *)to;
    PgkmModelFields from;
    PgkmGmmModel model;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &from);
    if (pgkm_model_is_null(&from)) /* as PL/pgSQL passes a variable without a value */
        return;
    read_fields(composite, context, &model);

    const PgkmMixture *const mixture = &model.mixture;
    const PgkmShape shape = covariances_shape(mixture->covariance_type, mixture->k, model.d);

    given->centroids = {mixture->means, 2, {mixture->k, model.d}};
    given->weights = {model.weights, 1, {mixture->k}};
    given->covariances = {model.covariances, shape.dimensions, {0}};
    memcpy(given->covariances.extent, shape.extents, shape.dimensions * sizeof(int32));
    given->covariance_type = mixture->covariance_type;
    fit_give_units(given, model.center, model.scale, pgkm_gmm_model_origin(composite).was_standardized, context);
}

void pgkm_gmm_trace_read(Datum composite, MemoryContext context, PgkmGmmTrace *trace)
{
    PgkmModelFields from;
    int32 d;

    pgkm_model_open(composite, &model_type, context, &from);
    pgkm_model_extents(&from, &trace->k, &d);
    trace->covariance_type = (PgkmCovariance)pgkm_model_word(&from, "covariance_type", &pgkm_covariances);
    trace->n_iter = DatumGetInt32(pgkm_model_field(&from, "n_iter")->value);
    trace->converged = DatumGetBool(pgkm_model_field(&from, "converged")->value);
    if (trace->n_iter < 1 || pgkm_model_field(&from, "n_iter")->isnull || pgkm_model_field(&from, "converged")->isnull)
        pgkm_raise_field(&from, "n_iter", "be at least 1, beside converged");
    trace->values = pgkm_model_numbers(&from, "trace", "hold n_iter finite values", {trace->n_iter});
}

void pgkm_gmm_model_read(Datum composite, MemoryContext context, PgkmGmmModel *model)
{
    PgkmMixture *const mixture = &model->mixture;
    PgkmError error;

    read_fields(composite, context, model);

    const int64 size = pgkm_covariance_size(mixture->covariance_type, mixture->k, model->d);
    double *const factors = (double *)MemoryContextAllocHuge(context, size * sizeof(double));
    double *const determinants = (double *)MemoryContextAlloc(context, mixture->k * sizeof(double));

    if (pgkm_mixture_factors(mixture->covariance_type, mixture->k, model->d, model->covariances, factors, determinants,
                             pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error);
    mixture->factors = factors;
    mixture->log_determinants = determinants;
}

Datum pgkm_gmm_model_with(Datum composite, const PgkmGmmModel *model, int64 rows)
{
    const PgkmMixture *const mixture = &model->mixture;
    PgkmModelFields from;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &from);
    pgkm_model_set(&from, "weights", pgkm_array(model->weights, {mixture->k}));
    pgkm_model_set(&from, "means", pgkm_array(mixture->means, {mixture->k, model->d}));
    pgkm_model_set(&from, "covariances",
                   pgkm_array(model->covariances, covariances_shape(mixture->covariance_type, mixture->k, model->d)));
    pgkm_model_set(&from, "mass", Float8GetDatum(model->mass));
    pgkm_model_add_rows(&from, rows);
    return pgkm_model_form(&from, composite);
}

/* The means of all components, in the units of the data. */
static Datum means_in_units(const PgkmGmmModel *model)
{
    const Size count = (Size)model->mixture.k * model->d;
    double *const means = (double *)MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(double));

    for (Size i = 0; i < count; ++i)
        means[i] = model->mixture.means[i] * model->scale[i % model->d] + model->center[i % model->d];
    return pgkm_array(means, {model->mixture.k, model->d});
}

/* Their covariances of a type that is not spherical: d of them or one, of d x d or d values. */
static Datum covariances_in_units(const PgkmGmmModel *model, PgkmCovariance type)
{
    const bool is_matrix = type != PGKM_COVARIANCE_DIAG;
    const PgkmShape shape = covariances_shape(type, model->mixture.k, model->d);
    const Size count = pgkm_shape_count(shape);
    double *const values = (double *)MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(double));

    for (Size i = 0; i < count; ++i) {
        const Size b = i % model->d;
        const Size a = is_matrix ? i / model->d % model->d : b;
        const bool is_spherical = model->mixture.covariance_type == PGKM_COVARIANCE_SPHERICAL;

        values[i] = model->covariances[is_spherical ? i / model->d : i] * model->scale[a] * model->scale[b];
    }
    return pgkm_array(values, shape);
}

/* pgkm_checked(model gmm_model) -> the same, checked, with its means and covariances in the units of the data. There a
 * spherical one is diagonal. Its arrays begin at 1. */
Datum pgkm_gmm_checked(PG_FUNCTION_ARGS)
{
    const Datum composite = PointerGetDatum(PG_GETARG_HEAPTUPLEHEADER(0));
    PgkmModelFields fields;
    PgkmGmmModel model;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &fields);
    read_fields(composite, CurrentMemoryContext, &model);
    (void)origin_read(&fields, model.d);

    if (model.scale != NULL) {
        const PgkmCovariance own = model.mixture.covariance_type;
        const PgkmCovariance type = own == PGKM_COVARIANCE_SPHERICAL ? PGKM_COVARIANCE_DIAG : own;

        pgkm_model_set(&fields, "covariance_type", CStringGetTextDatum(pgkm_word_of(&pgkm_covariances, type)));
        pgkm_model_set(&fields, "means", means_in_units(&model));
        pgkm_model_set(&fields, "covariances", covariances_in_units(&model, type));
    }
    pgkm_model_from_one(&fields, {"weights", "means", "covariances"});
    PG_RETURN_DATUM(pgkm_model_form(&fields, composite));
}
