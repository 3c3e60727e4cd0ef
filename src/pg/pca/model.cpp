/*
 * model.cpp - pca_model: made by the engine's job, unpacked for the row functions.
 */
#include "pg/pca/pca.h"

#include <cfloat>
#include <cmath>

#include "pg/progress.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "catalog/pg_type.h"

PG_FUNCTION_INFO_V1(pgkm_pca_checked);
}

static const PgkmField fields[] = {{"n_components", INT4OID},
                                   {"d", INT4OID},
                                   {"mean", FLOAT8ARRAYOID},
                                   {"scale", FLOAT8ARRAYOID},
                                   {"components", FLOAT8ARRAYOID},
                                   {"explained_variance", FLOAT8ARRAYOID},
                                   {"explained_variance_ratio", FLOAT8ARRAYOID},
                                   {"singular_values", FLOAT8ARRAYOID},
                                   {"n", INT8OID},
                                   {"whiten", BOOLOID},
                                   {"fills", FLOAT8ARRAYOID},
                                   {"origin", InvalidOid}};
static const PgkmCompositeType model_type = {"pca_model", fields, lengthof(fields), 2};

TupleDesc pgkm_pca_model_tupdesc(FunctionCallInfo fcinfo)
{
    return origin_tupdesc(fcinfo, &model_type);
}

Datum pgkm_pca_model_of_fit(const PgkmResult *result, const PgkmRequest *request, const TableCall *call,
                            TupleDesc tupdesc)
{
    const int32 count = result->k;
    const int32 d = result->d;

    /* No field is NULL, so that `model IS NOT NULL` tells whether there is a model. */
    return pgkm_composite_make(
        tupdesc, {count, d, pgkm_array(result->mean, {d}), pgkm_array_or_empty(result->scale, d),
                  pgkm_array(result->components, {count, d}), pgkm_array(result->explained_variance, {count}),
                  pgkm_array(result->explained_variance_ratio, {count}), pgkm_array(result->singular_values, {count}),
                  result->n, request->pca.whiten != 0, pgkm_array_or_empty(call == NULL ? NULL : call->fills, d),
                  origin_build(tupdesc, &pca_kind, &request->pca, call, NULL, NULL, d)});
}

/* What whitening divides by; where there is no variance by next to nothing, as scikit-learn does. */
static const double *read_deviation(const PgkmModelFields *from, const PgkmPcaModel *model)
{
    const NullableDatum *const field = pgkm_model_field(from, "whiten");
    const bool whiten = !field->isnull && DatumGetBool(field->value);
    double *const deviation = (double *)MemoryContextAlloc(from->context, model->n_components * sizeof(double));

    for (int32 j = 0; j < model->n_components; ++j)
        deviation[j] = whiten ? Max(std::sqrt(model->explained_variance[j]), DBL_EPSILON) : 1.0;
    return deviation;
}

void pgkm_pca_model_read(Datum composite, MemoryContext context, PgkmPcaModel *model)
{
    static const char at_least_0[] = "hold n_components values of at least 0";
    PgkmModelFields from;

    pgkm_model_open(composite, &model_type, context, &from);
    pgkm_model_extents(&from, &model->n_components, &model->d);

    const int32 count = model->n_components;

    model->mean = pgkm_model_numbers(&from, "mean", "hold d finite values", {model->d});
    model->scale = pgkm_model_has(&from, "scale")
                       ? pgkm_model_numbers(&from, "scale", "hold d finite values, or be empty", {model->d})
                       : NULL;
    for (int32 f = 0; model->scale != NULL && f < model->d; ++f)
        if (!(model->scale[f] > 0))
            pgkm_raise_field(&from, "scale", "hold positive values");
    model->components =
        pgkm_model_numbers(&from, "components", "hold n_components x d finite values", {count, model->d});
    model->explained_variance = pgkm_model_numbers(&from, "explained_variance", at_least_0, {count});
    for (int32 j = 0; j < count; ++j)
        if (model->explained_variance[j] < 0)
            pgkm_raise_field(&from, "explained_variance", at_least_0);
    for (const char *const name : {"explained_variance_ratio", "singular_values"})
        (void)pgkm_model_numbers(&from, name, "hold n_components finite values", {count});
    model->deviation = read_deviation(&from, model);
    model->fills = pgkm_model_fills(&from, model->d);
    model->columns = model_columns(&model_type, context);
}

/* pgkm_checked(model pca_model) -> the same, checked; its arrays begin at 1 */
Datum pgkm_pca_checked(PG_FUNCTION_ARGS)
{
    const Datum composite = PointerGetDatum(PG_GETARG_HEAPTUPLEHEADER(0));
    PgkmModelFields fields;
    PgkmPcaModel model;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &fields);
    pgkm_pca_model_read(composite, CurrentMemoryContext, &model);
    (void)origin_read(&fields, model.d);

    pgkm_model_from_one(&fields, {"components", "explained_variance", "explained_variance_ratio", "singular_values"});
    PG_RETURN_DATUM(pgkm_model_form(&fields, composite));
}
