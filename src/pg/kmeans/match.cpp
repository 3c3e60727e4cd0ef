/*
 * match.cpp - kmeans_match: the clusters of two models paired one to one, at the least total distance.
 */
#include "pg/kmeans/model.h"

#include <cmath>

#include "pg/run/run_job.h"

extern "C" {
#include "miscadmin.h"
#include "utils/float.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_match);
}

/* 22023 where both know what their features are, and these are not the same. */
static void check_features(Datum old_value, Datum new_value, int32 d)
{
    const Sources *const olds = pgkm_model_origin(old_value).sources;
    const Sources *const news = pgkm_model_origin(new_value).sources;

    for (int32 f = 0; olds != NULL && news != NULL && f < d; ++f) {
        const char *const old_name = sources_feature_name(olds, f);
        const char *const new_name = sources_feature_name(news, f);

        if (strcmp(old_name, new_name) != 0)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the models are of different features"),
                            errdetail("Feature %d is \"%s\" in the old model, and \"%s\" in the new one.", f + 1,
                                      old_name, new_name)));
    }
}

static void check_fit(const PgkmModel *olds, const PgkmModel *news)
{
    if (olds->d != news->d)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the models have different numbers of features: %d and %d", olds->d, news->d)));
    if (olds->metric != news->metric)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the models have different metrics: %s and %s",
                               pgkm_word_of(&pgkm_metrics, olds->metric), pgkm_word_of(&pgkm_metrics, news->metric))));
}

static bool same_units(const PgkmModel *a, const PgkmModel *b)
{
    const Size bytes = (Size)a->d * sizeof(double);

    return a->center == NULL || b->center == NULL
               ? a->center == b->center
               : memcmp(a->center, b->center, bytes) == 0 && memcmp(a->scale, b->scale, bytes) == 0;
}

/*
 * Centroid j of a model for metric l2: in the units of the data. For metric cosine directions in the space of the new
 * model are compared, where a centroid of an old one in other units is brought.
 */
static void place_centroid(const PgkmModel *model, const PgkmModel *news, int32 j, double *centroid)
{
    if (news->metric == PGKM_COSINE && same_units(model, news)) {
        memcpy(centroid, model->centroids + (Size)j * model->d, (Size)model->d * sizeof(double));
        return;
    }
    pgkm_model_centroid(model, j, centroid);
    if (news->metric == PGKM_COSINE)
        pgkm_model_place(news, PGKM_FLOAT64, centroid);
}

/* distances[i * old k + j], between cluster i of the new model and j of the old one. */
static double *all_distances(const PgkmModel *olds, const PgkmModel *news)
{
    const int32 d = news->d;
    double *const old_centroids = (double *)palloc_extended((Size)olds->k * d * sizeof(double), MCXT_ALLOC_HUGE);
    double *const new_centroid = (double *)palloc((Size)d * sizeof(double));
    double *const distances = (double *)palloc_extended((Size)news->k * olds->k * sizeof(double), MCXT_ALLOC_HUGE);

    for (int32 j = 0; j < olds->k; ++j) {
        CHECK_FOR_INTERRUPTS();
        place_centroid(olds, news, j, old_centroids + (Size)j * d);
    }
    for (int32 i = 0; i < news->k; ++i) {
        double *const row = distances + (Size)i * olds->k;

        CHECK_FOR_INTERRUPTS();
        place_centroid(news, news, i, new_centroid);
        pgkm_distances(new_centroid, old_centroids, olds->k, d, row);
        for (int32 j = 0; j < olds->k; ++j) {
            if (unlikely(!std::isfinite(row[j])))
                float_overflow_error();
            row[j] = fit_distance(row[j], news->metric);
        }
    }
    pfree(new_centroid);
    pfree(old_centroids);
    return distances;
}

/* 54000 where the distances would take more than pg_kmeans.memory_limit leaves. */
static void require_memory(const PgkmModel *olds, const PgkmModel *news)
{
    const uint64 matrix = (uint64)news->k * (uint64)olds->k * sizeof(double);
    const uint64 bytes = (news->k > olds->k ? 2 : 1) * matrix + (uint64)olds->k * (uint64)olds->d * sizeof(double);

    if (bytes > pgkm_memory_available())
        pgkm_memory_make_room(bytes);
    if (bytes > pgkm_memory_available())
        pgkm_raise_working_memory(psprintf("Matching %d and %d clusters", olds->k, news->k), bytes);
}

/*
 * kmeans_match(old kmeans_model, new kmeans_model) -> setof (new_id, old_id, distance): pairs by new_id; behind them
 * old clusters without a partner
 */
Datum pgkm_kmeans_match(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    const Datum old_value = PointerGetDatum(PG_GETARG_HEAPTUPLEHEADER(0));
    const Datum new_value = PointerGetDatum(PG_GETARG_HEAPTUPLEHEADER(1));
    PgkmModel olds, news;
    PgkmError error;

    pgkm_model_read(old_value, NULL, &olds);
    pgkm_model_read(new_value, NULL, &news);
    check_fit(&olds, &news);
    check_features(old_value, new_value, news.d);
    require_memory(&olds, &news);

    const double *const distances = all_distances(&olds, &news);
    int32 *const partners = (int32 *)palloc((Size)news.k * sizeof(int32));
    bool *const has_partner = (bool *)palloc0((Size)olds.k * sizeof(bool));

    if (pgkm_pair(distances, news.k, olds.k, partners, pgkm_interrupted, &error) != PGKM_OK)
        pgkm_raise(&error);
    for (int32 i = 0; i < news.k; ++i) {
        const int32 j = partners[i];

        CHECK_FOR_INTERRUPTS();
        if (j < 0) {
            pgkm_result_put(result, {i, {}, {}});
            continue;
        }
        has_partner[j] = true;
        pgkm_result_put(result, {i, j, distances[(Size)i * olds.k + j]});
    }
    for (int32 j = 0; j < olds.k; ++j)
        if (!has_partner[j])
            pgkm_result_put(result, {{}, j, {}});
    return (Datum)0;
}
