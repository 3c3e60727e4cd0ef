/*
 * model.cpp - kmeans_model: built from a fit's result, unpacked, changed.
 */
#include "pg/kmeans/model.h"

#include <algorithm>
#include <cmath>

#include "pg/values/composite_read.h"

extern "C" {
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/typcache.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_checked);
}

static const PgkmField fields[] = {{"k", INT4OID},
                                   {"d", INT4OID},
                                   {"centroids", FLOAT8ARRAYOID},
                                   {"size", INT8ARRAYOID},
                                   {"within_ss", FLOAT8ARRAYOID},
                                   {"inertia", FLOAT8OID},
                                   {"n_iter", INT4OID},
                                   {"converged", BOOLOID},
                                   {"n", INT8OID},
                                   {"metric", TEXTOID},
                                   {"seed", INT8OID},
                                   {"center", FLOAT8ARRAYOID},
                                   {"scale", FLOAT8ARRAYOID},
                                   {"origin", InvalidOid},
                                   {"fills", FLOAT8ARRAYOID},
                                   {"mass", FLOAT8ARRAYOID}};
static const PgkmCompositeType model_type = {"kmeans_model", fields, lengthof(fields), 2};

TupleDesc pgkm_model_tupdesc(FunctionCallInfo fcinfo)
{
    return origin_tupdesc(fcinfo, &model_type);
}

void pgkm_model_check_size(const PgkmRequest *request, int64 k, int64 n)
{
    const int64 clusters = Min(k, n);
    const int32 d = request->points.d;
    /* Sizes, sums and parents beside the centroids, center, scale and fills, and what headers take. */
    const bool is_tree = request->algorithm == PGKM_TREE;
    const int64 each = (int64)d + (is_tree ? 3 : 2);
    const int64 values = clusters * each + 3 * (int64)d + 100;

    if (values > (int64)(MaxAllocSize / sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a model of %s of %s exceeds the maximum size of a value",
                               pgkm_counted(clusters, is_tree ? "node" : "cluster"), pgkm_counted(d, "feature"))));
}

Datum pgkm_model_build(const PgkmResult *result, const PgkmRequest *request, PgkmValue origin, const double *fills,
                       TupleDesc tupdesc, PgkmValue parents)
{
    const PgkmOptions *const options = &request->kmeans;
    const int32 k = result->k;
    const int32 d = result->d;

    pgkm_model_check_size(request, k, k); /* a radius may have asked for more clusters than were known before the fit */

    /* No field is NULL, so that `model IS NOT NULL` tells whether there is a model. */
    return pgkm_composite_make(tupdesc,
                               {k, d, pgkm_array(result->centroids, {k, d}), pgkm_array(result->sizes, {k}),
                                pgkm_array(result->within_ss, {k}), result->inertia, result->n_iter,
                                result->converged != 0, result->n, pgkm_word_of(&pgkm_metrics, options->metric),
                                (int64)options->seed, pgkm_array_or_empty(result->center, d),
                                pgkm_array_or_empty(result->scale, d), origin, pgkm_array_or_empty(fills, d),
                                parents.isnull ? pgkm_array_or_empty((const double *)NULL, k) : parents});
}

Datum pgkm_model_of_fit(const PgkmResult *result, const PgkmRequest *request, const TableCall *call, TupleDesc tupdesc)
{
    const bool standardized = result->center != NULL;
    const bool is_one = result->k == 1 && !standardized; /* it is the mean, and no deviation from it */
    const double *const means = is_one ? NULL : result->feature_means;
    const double *const deviations = is_one ? NULL : result->feature_deviations;
    PgkmOptions options = request->kmeans;

    options.init = result->init;
    return pgkm_model_build(result, request,
                            origin_build(tupdesc, &kmeans_kind, &options, call, standardized ? result->center : means,
                                         standardized ? result->scale : deviations, result->d),
                            call == NULL ? NULL : call->fills, tupdesc);
}

/* --- reading --- */

static bool are_bits(const double *values, Size count)
{
    return std::all_of(values, values + count, [](double value) { return value == 0 || value == 1; });
}

void pgkm_model_read_clusters(const PgkmModelFields *from, PgkmModel *model)
{
    const char *const k = from->type->fields[0].name;

    pgkm_model_extents(from, &model->k, &model->d);
    model->metric = (PgkmMetric)pgkm_model_word(from, "metric", &pgkm_metrics);
    model->centroids =
        pgkm_model_numbers(from, "centroids", psprintf("hold %s x d finite values", k), {model->k, model->d});
    model->sizes = (const int64 *)pgkm_model_array(from, "size", psprintf("hold %s values", k), {model->k});
    model->within_ss = pgkm_model_numbers(from, "within_ss", psprintf("hold %s finite values", k), {model->k});
    pgkm_model_units(from, model->d, &model->center, &model->scale);
    model->fills = pgkm_model_fills(from, model->d);
    model->columns = model_columns(from->type, from->context);
}

void pgkm_model_read(Datum composite, MemoryContext context, PgkmModel *model)
{
    PgkmModelFields from;

    pgkm_model_open(composite, &model_type, context, &from);
    pgkm_model_read_clusters(&from, model);
    if (model->metric == PGKM_HAMMING && !are_bits(model->centroids, (Size)model->k * model->d))
        pgkm_raise_field(&from, "centroids", "hold zeros and ones with metric 'hamming'");
    if (model->metric == PGKM_HAMMING && model->center != NULL)
        pgkm_raise_field(&from, "center", "be empty with metric 'hamming'");
    model->masses = pgkm_model_has(&from, "mass")
                        ? pgkm_model_numbers(&from, "mass", "hold k finite values, or none", {model->k})
                        : NULL;
}

bool pgkm_model_is_null(Datum composite)
{
    PgkmModelFields from;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &from);
    return pgkm_model_is_null(&from);
}

Origin pgkm_model_origin(Datum composite)
{
    return origin_of(composite, &model_type);
}

/* --- changed --- */

Datum pgkm_model_with(Datum composite, const PgkmModel *model, int64 rows)
{
    PgkmModelFields from;
    double inertia = 0;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &from);
    for (int32 j = 0; j < model->k; ++j)
        inertia += model->within_ss[j];
    pgkm_model_set(&from, "centroids", pgkm_array(model->centroids, {model->k, model->d}));
    pgkm_model_set(&from, "size", pgkm_array(model->sizes, {model->k}));
    pgkm_model_set(&from, "within_ss", pgkm_array(model->within_ss, {model->k}));
    pgkm_model_set(&from, "inertia", Float8GetDatum(inertia));
    if (model->masses != NULL)
        pgkm_model_set(&from, "mass", pgkm_array(model->masses, {model->k}));
    pgkm_model_add_rows(&from, rows);
    return pgkm_model_form(&from, composite);
}

/* --- in the units of the data --- */

void pgkm_model_centroid(const PgkmModel *model, int32 j, double *centroid)
{
    const double *const row = model->centroids + (Size)j * model->d;

    for (int32 f = 0; f < model->d; ++f) {
        centroid[f] = model->center != NULL ? row[f] * model->scale[f] + model->center[f] : row[f];
        if (unlikely(!std::isfinite(centroid[f])))
            float_overflow_error();
    }
}

/* All centroids. */
static Datum centroids_in_units(const PgkmModel *model)
{
    const Datum array = pgkm_array((const double *)NULL, {model->k, model->d});
    double *const centroids = (double *)ARR_DATA_PTR(DatumGetArrayTypeP(array));

    for (int32 j = 0; j < model->k; ++j) {
        CHECK_FOR_INTERRUPTS();
        pgkm_model_centroid(model, j, centroids + (Size)j * model->d);
    }
    return array;
}

/* pgkm_checked(model kmeans_model) -> the same, checked, with its centroids in the units of the data; its arrays begin
 * at 1 */
Datum pgkm_kmeans_checked(PG_FUNCTION_ARGS)
{
    const Datum composite = PointerGetDatum(PG_GETARG_HEAPTUPLEHEADER(0));
    PgkmModelFields fields;
    PgkmModel model;

    pgkm_model_open(composite, &model_type, NULL, &fields);
    pgkm_model_read(composite, NULL, &model);
    (void)origin_read(&fields, model.d);
    if (model.center != NULL)
        pgkm_model_set(&fields, "centroids", centroids_in_units(&model));
    pgkm_model_from_one(&fields, {"centroids", "size", "within_ss"});
    PG_RETURN_DATUM(pgkm_model_form(&fields, composite));
}
