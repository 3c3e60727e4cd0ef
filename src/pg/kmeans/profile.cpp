/*
 * profile.cpp - kmeans_profile: what tells the clusters of a model apart.
 */
#include "pg/kmeans/model.h"

#include "pg/compat.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_profile);
}

/* The name of a feature: its column's, or its column's with a number where one holds an array, or its number. */
static const char *name_of(const PgkmModelRows *rows, int32 d, int32 feature)
{
    if (rows->count == d)
        return TextDatumGetCString(rows->names[feature]);
    if (rows->count == 1)
        return psprintf("%s[%d]", TextDatumGetCString(rows->names[0]), feature + 1);
    return psprintf("%d", feature + 1);
}

/* The mean over the clusters, by their sizes. */
static double mean_of_centroids(const PgkmModel *model, const double *centroids, int32 feature)
{
    double sum = 0;
    double rows = 0;

    for (int32 j = 0; j < model->k; ++j) {
        sum += (double)model->sizes[j] * centroids[(Size)j * model->d + feature];
        rows += (double)model->sizes[j];
    }
    return rows > 0 ? sum / rows : 0;
}

/*
 * kmeans_profile(model kmeans_model) -> setof (cluster_id, feature, value, overall_mean, deviations)
 *
 *   for each cluster and feature: the centroid's value in the units of the data, the mean of all rows, and how many
 *   standard deviations of all rows lie between them; NULL where the model has none, or the feature is constant
 */
Datum pgkm_kmeans_profile(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    PgkmModel model;
    PgkmModelRows rows;

    pgkm_model_read(PG_GETARG_DATUM(0), CurrentMemoryContext, &model);
    pgkm_model_rows_read(PG_GETARG_DATUM(0), &model, &rows);

    double *const centroids =
        (double *)MemoryContextAllocHuge(CurrentMemoryContext, (Size)model.k * model.d * sizeof(double));

    for (int32 j = 0; j < model.k; ++j)
        pgkm_model_centroid(&model, j, centroids + (Size)j * model.d);

    double *const means = (double *)palloc(model.d * sizeof(double));
    const char **const names = (const char **)palloc(model.d * sizeof(char *));

    for (int32 f = 0; f < model.d; ++f) {
        means[f] = rows.means != NULL ? rows.means[f] : mean_of_centroids(&model, centroids, f);
        names[f] = name_of(&rows, model.d, f);
    }
    for (int32 j = 0; j < model.k; ++j) {
        CHECK_FOR_INTERRUPTS();
        for (int32 f = 0; f < model.d; ++f) {
            const double value = centroids[(Size)j * model.d + f];
            const double deviation = rows.deviations != NULL ? rows.deviations[f] : 0;

            pgkm_result_put(
                result, {j, names[f], value, means[f], pgkm_value_if(deviation > 0, (value - means[f]) / deviation)});
        }
    }
    return (Datum)0;
}
