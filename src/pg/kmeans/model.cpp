/*
 * model.cpp - kmeans_model: built from a fit's result, unpacked, its clusters as rows.
 */
#include "pg/kmeans/model.h"

#include <cmath>

#include "pg/kmeans/options.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/float.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_centroids);
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
                                   {"scale", FLOAT8ARRAYOID}};
static const PgkmCompositeType model_type = {"kmeans_model", fields, lengthof(fields)};

TupleDesc pgkm_model_tupdesc(FunctionCallInfo fcinfo)
{
    return pgkm_result_tupdesc(fcinfo, &model_type);
}

void pgkm_model_check_size(int64 k, int64 n, int32 d)
{
    const int64 clusters = Min(k, n);
    /* Sizes and sums beside the centroids, center and scale, and what headers take. */
    const int64 values = clusters * ((int64)d + 2) + 2 * (int64)d + 100;

    if (values > (int64)(MaxAllocSize / sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("a model of %lld clusters of %d features exceeds the maximum size of a value",
                               (long long)clusters, d)));
}

Datum pgkm_model_build(const PgkmResult *result, const PgkmOptions *options, TupleDesc tupdesc)
{
    const int32 k = result->k;
    const int32 d = result->d;
    const bool standardized = result->center != NULL;

    /* No field is NULL, so that `model IS NOT NULL` tells whether there is a model. */
    return pgkm_composite_make(tupdesc, {k, d, pgkm_array(result->centroids, {k, d}), pgkm_array(result->sizes, {k}),
                                         pgkm_array(result->within_ss, {k}), result->inertia, result->n_iter,
                                         result->converged != 0, result->n,
                                         pgkm_word_of(&pgkm_metrics, options->metric), (int64)options->seed,
                                         standardized ? pgkm_array(result->center, {d}) : pgkm_array_fill(0, d),
                                         standardized ? pgkm_array(result->scale, {d}) : pgkm_array_fill(1, d)});
}

void pgkm_model_of_result(const PgkmResult *result, PgkmMetric metric, PgkmModel *model)
{
    *model = {result->k,     result->d,         metric,         result->centroids,
              result->sizes, result->within_ss, result->center, result->scale};
}

/* --- reading --- */

/* Whether (value - center) / scale is the value. */
static bool is_identity(const PgkmModel *model)
{
    bool same = true;

    for (int32 f = 0; f < model->d; ++f)
        same = same && model->center[f] == 0 && model->scale[f] == 1;
    return same;
}

static void read_standardization(const PgkmModelFields *from, PgkmModel *model)
{
    model->center = NULL;
    model->scale = NULL;
    if (pgkm_model_field(from, "center")->isnull && pgkm_model_field(from, "scale")->isnull)
        return;
    model->center = pgkm_model_numbers(from, "center", "hold d finite values, or be null like scale", {model->d});
    model->scale = pgkm_model_numbers(from, "scale", "hold d finite values, or be null like center", {model->d});
    for (int32 f = 0; f < model->d; ++f)
        if (!(model->scale[f] > 0))
            pgkm_raise_field(from, "scale", "hold positive values");
    if (is_identity(model))
        model->center = model->scale = NULL;
}

void pgkm_model_read(Datum composite, MemoryContext context, PgkmModel *model)
{
    PgkmModelFields from;

    pgkm_model_open(composite, &model_type, context, &from);
    pgkm_model_extents(&from, &model->k, &model->d);
    model->metric = (PgkmMetric)pgkm_model_word(&from, "metric", &pgkm_metrics);
    model->centroids = pgkm_model_numbers(&from, "centroids", "hold k x d finite values", {model->k, model->d});
    model->sizes = (const int64 *)pgkm_model_array(&from, "size", "hold k values", {model->k});
    model->within_ss = pgkm_model_numbers(&from, "within_ss", "hold k finite values", {model->k});
    read_standardization(&from, model);
}

/* --- changed --- */

static void set_field(NullableDatum *values, const char *name, Datum value)
{
    int i = 0;

    while (strcmp(fields[i].name, name) != 0)
        ++i;
    values[i] = {value, false};
}

Datum pgkm_model_with(Datum composite, const PgkmModel *model, int64 rows)
{
    const HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
    NullableDatum values[PGKM_MOST_FIELDS];
    Datum datums[PGKM_MOST_FIELDS];
    bool nulls[PGKM_MOST_FIELDS];
    PgkmModelFields from;
    double inertia = 0;

    pgkm_model_open(composite, &model_type, CurrentMemoryContext, &from);
    memcpy(values, from.values, sizeof values);

    const NullableDatum *const n = pgkm_model_field(&from, "n");

    for (int32 j = 0; j < model->k; ++j)
        inertia += model->within_ss[j];
    set_field(values, "centroids", pgkm_array(model->centroids, {model->k, model->d}));
    set_field(values, "size", pgkm_array(model->sizes, {model->k}));
    set_field(values, "within_ss", pgkm_array(model->within_ss, {model->k}));
    set_field(values, "inertia", Float8GetDatum(inertia));
    set_field(values, "n", Int64GetDatum((n->isnull ? 0 : DatumGetInt64(n->value)) + rows));
    for (int i = 0; i < model_type.count; ++i) {
        datums[i] = values[i].value;
        nulls[i] = values[i].isnull;
    }

    const TupleDesc tupdesc =
        lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
    const Datum result = HeapTupleGetDatum(heap_form_tuple(tupdesc, datums, nulls));

    ReleaseTupleDesc(tupdesc);
    return result;
}

/* --- as rows --- */

/* In the units of the data: the standardization is undone, as far as that has a finite value. */
static void write_centroid(const PgkmModel *model, const double *row, double *centroid)
{
    for (int32 f = 0; f < model->d; ++f) {
        centroid[f] = model->center != NULL ? row[f] * model->scale[f] + model->center[f] : row[f];
        if (unlikely(!std::isfinite(centroid[f])))
            float_overflow_error();
    }
}

void pgkm_put_centroids(ReturnSetInfo *result, const PgkmModel *model)
{
    double *const values = (double *)palloc(model->d * sizeof(double));

    for (int32 j = 0; j < model->k; ++j) {
        write_centroid(model, model->centroids + (Size)j * model->d, values);

        const Datum centroid = pgkm_array(values, {model->d});

        pgkm_result_put(result, {j, centroid, model->sizes[j], model->within_ss[j]});
        pfree(DatumGetPointer(centroid));
    }
    pfree(values);
}

/* kmeans_centroids(model kmeans_model)
 *     -> setof (cluster_id integer, centroid double precision[], size bigint, within_ss double precision) */
Datum pgkm_kmeans_centroids(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    PgkmModel model;

    pgkm_model_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &model);
    pgkm_put_centroids(result, &model);
    return (Datum)0;
}
