/*
 * model.cpp - pca_model: made by the engine's job, unpacked for the row functions.
 */
#include "pg/pca/pca.h"

#include <cfloat>
#include <cmath>

#include "pg/compat.h"
#include "pg/values/composite.h"
#include "pg/values/composite_read.h"
#include "pg/values/datum.h"
#include "pg/progress.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
}

enum PcaModelField {
    PCA_N_COMPONENTS,
    PCA_D,
    PCA_MEAN,
    PCA_SCALE,
    PCA_COMPONENTS,
    PCA_EXPLAINED_VARIANCE,
    PCA_EXPLAINED_VARIANCE_RATIO,
    PCA_SINGULAR_VALUES,
    PCA_N,
    PCA_WHITEN,
    PCA_COUNT
};

static const Oid field_types[PCA_COUNT] = {INT4OID,        INT4OID,        FLOAT8ARRAYOID, FLOAT8ARRAYOID,
                                           FLOAT8ARRAYOID, FLOAT8ARRAYOID, FLOAT8ARRAYOID, FLOAT8ARRAYOID,
                                           INT8OID,        BOOLOID};
static const PgkmCompositeType model_type = {"pca_model", field_types, PCA_COUNT};

TupleDesc pgkm_pca_model_tupdesc(FunctionCallInfo fcinfo)
{
    return pgkm_result_tupdesc(fcinfo, &model_type);
}

Datum pgkm_pca_model_build(const PgkmResult *result, const PgkmPcaOptions *options, TupleDesc tupdesc)
{
    const int32 count = result->k;
    Datum       values[PCA_COUNT] = {0};
    bool        nulls[PCA_COUNT] = {false};

    values[PCA_N_COMPONENTS] = Int32GetDatum(count);
    values[PCA_D] = Int32GetDatum(result->d);
    values[PCA_MEAN] = pgkm_float8_array(result->mean, result->d, 0);
    /* No field is NULL, so that `model IS NOT NULL` tells whether there is a model. */
    values[PCA_SCALE] =
        result->scale != NULL ? pgkm_float8_array(result->scale, result->d, 0) : pgkm_float8_fill(1, result->d);
    values[PCA_COMPONENTS] = pgkm_float8_array(result->components, count, result->d);
    values[PCA_EXPLAINED_VARIANCE] = pgkm_float8_array(result->explained_variance, count, 0);
    values[PCA_EXPLAINED_VARIANCE_RATIO] = pgkm_float8_array(result->explained_variance_ratio, count, 0);
    values[PCA_SINGULAR_VALUES] = pgkm_float8_array(result->singular_values, count, 0);
    values[PCA_N] = Int64GetDatum(result->n);
    values[PCA_WHITEN] = BoolGetDatum(options->whiten != 0);
    return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}

static int32 read_extent(const PgkmFields *fields, PcaModelField field)
{
    const int32 extent = fields->nulls[field] ? 0 : DatumGetInt32(fields->values[field]);

    if (extent < 1)
        pgkm_raise_fields(fields, "Fields n_components and d must be at least 1.");
    return extent;
}

/* What whitening divides by; where there is no variance by next to nothing, as scikit-learn does. */
static const double *read_deviation(const PgkmFields *fields, const PgkmPcaModel *model)
{
    const bool    whiten = !fields->nulls[PCA_WHITEN] && DatumGetBool(fields->values[PCA_WHITEN]);
    double *const deviation =
        (double *) MemoryContextAlloc(fields->context, model->n_components * sizeof(double));

    for (int32 j = 0; j < model->n_components; ++j)
        deviation[j] = whiten ? Max(std::sqrt(model->explained_variance[j]), DBL_EPSILON) : 1.0;
    return deviation;
}

void pgkm_pca_model_read(Datum composite, MemoryContext context, void *out)
{
    PgkmPcaModel *const model = (PgkmPcaModel *) out;
    Datum               values[PCA_COUNT];
    bool                nulls[PCA_COUNT];
    const PgkmFields    fields = {model_type.name, values, nulls, context};

    pgkm_read_composite(composite, &model_type, values, nulls);
    model->n_components = read_extent(&fields, PCA_N_COMPONENTS);
    model->d = read_extent(&fields, PCA_D);

    const int32 count = model->n_components;

    model->mean = pgkm_field_numbers(&fields, PCA_MEAN, "Field mean must hold d finite values.", 0, model->d, 0);
    model->scale = nulls[PCA_SCALE] ? NULL
                                    : pgkm_field_numbers(&fields, PCA_SCALE,
                                                         "Field scale must hold d finite values, or be null.", 0,
                                                         model->d, 0);
    for (int32 f = 0; model->scale != NULL && f < model->d; ++f)
        if (!(model->scale[f] > 0))
            pgkm_raise_fields(&fields, "Field scale must hold positive values.");
    model->components = pgkm_field_numbers(
        &fields, PCA_COMPONENTS, "Field components must hold n_components x d finite values.", 0, count, model->d);
    model->explained_variance =
        pgkm_field_numbers(&fields, PCA_EXPLAINED_VARIANCE,
                           "Field explained_variance must hold n_components values of at least 0.", 0, count, 0);
    for (int32 j = 0; j < count; ++j)
        if (model->explained_variance[j] < 0)
            pgkm_raise_fields(&fields, "Field explained_variance must hold n_components values of at least 0.");
    model->explained_variance_ratio =
        pgkm_field_numbers(&fields, PCA_EXPLAINED_VARIANCE_RATIO,
                           "Field explained_variance_ratio must hold n_components finite values.", 0, count, 0);
    model->singular_values = pgkm_field_numbers(
        &fields, PCA_SINGULAR_VALUES, "Field singular_values must hold n_components finite values.", 0, count, 0);
    model->deviation = read_deviation(&fields, model);
}
