/*
 * profile.cpp - kmeans_profile: each feature of each centroid beside the mean of all rows.
 */
#include "pg/kmeans/profile.h"

#include <algorithm>
#include <cmath>

extern "C" {
#include "miscadmin.h"
#include "utils/float.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_profile);
}

/* Calls visit(weight, centroid) for each cluster: its rows, or 1 where no cluster has any. */
template <typename Visit>
static void each_cluster(const PgkmModel *model, Visit visit)
{
    const bool has_rows = std::any_of(model->sizes, model->sizes + model->k, [](int64 size) { return size > 0; });
    double *const centroid = (double *)palloc(model->d * sizeof(double));

    for (int32 j = 0; j < model->k; ++j) {
        CHECK_FOR_INTERRUPTS();
        pgkm_model_centroid(model, j, centroid);
        visit(has_rows ? (double)Max(model->sizes[j], 0) : 1.0, centroid);
    }
    pfree(centroid);
}

static double *centroid_means(const PgkmModel *model)
{
    double *const means = (double *)palloc0(model->d * sizeof(double));
    double rows = 0;

    each_cluster(model, [&](double weight, const double *centroid) {
        rows += weight;
        for (int32 f = 0; f < model->d; ++f)
            means[f] = float8_pl(means[f], float8_mul(weight, centroid[f]));
    });
    for (int32 f = 0; f < model->d; ++f)
        means[f] /= rows;
    return means;
}

static double *centroid_spreads(const PgkmModel *model, const double *means)
{
    double *const spreads = (double *)palloc0(model->d * sizeof(double));
    double rows = 0;

    each_cluster(model, [&](double weight, const double *centroid) {
        rows += weight;
        for (int32 f = 0; f < model->d; ++f)
            spreads[f] += weight * (centroid[f] - means[f]) * (centroid[f] - means[f]);
    });
    for (int32 f = 0; f < model->d; ++f)
        spreads[f] = std::isfinite(spreads[f]) ? std::sqrt(spreads[f] / rows) : 0;
    return spreads;
}

/* The numbers of features stand for names of a model that knows none, or not those of all. */
static const char **feature_names(const Sources *sources, int32 d)
{
    const char **const names = (const char **)palloc(d * sizeof(char *));

    for (int32 f = 0; f < d; ++f)
        names[f] = sources != NULL ? sources_feature_name(sources, f) : psprintf("%d", f + 1);
    return names;
}

void profile_read(Datum composite, Profile *profile)
{
    PgkmModel *const model = &profile->model;

    pgkm_model_read(composite, CurrentMemoryContext, model);

    const Origin origin = pgkm_model_origin(composite);

    profile->names = feature_names(origin.sources, model->d);
    profile->sources = model->metric == PGKM_COSINE ? NULL : origin.sources;
    profile->means = origin.means == NULL ? centroid_means(model) : origin.means;
    profile->knows_deviations = origin.deviations != NULL;
    profile->spreads = profile->knows_deviations ? origin.deviations : centroid_spreads(model, profile->means);
}

const char *profile_text(const Profile *profile, int32 f, double value, int digits)
{
    const double spread = profile->spreads[f];

    return source_value_text(profile->sources == NULL ? NULL : sources_of_feature(profile->sources, &f), value, spread,
                             digits);
}

#define DIGITS 3

/*
 * kmeans_profile(model kmeans_model) -> setof (cluster_id, feature, value, overall_mean, deviations, summary): of each
 * centroid, in the units of the data, each feature
 */
Datum pgkm_kmeans_profile(PG_FUNCTION_ARGS)
{
    ReturnSetInfo *const result = pgkm_result_begin(fcinfo);
    Profile profile;

    profile_read(PG_GETARG_DATUM(0), &profile);

    const int32 d = profile.model.d;
    double *const centroid = (double *)palloc(d * sizeof(double));
    const char **const overall = (const char **)palloc(d * sizeof(char *));
    const MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "kmeans profile", ALLOCSET_DEFAULT_SIZES);

    for (int32 f = 0; f < d; ++f)
        overall[f] = profile_text(&profile, f, profile.means[f], DIGITS);

    const MemoryContext before = MemoryContextSwitchTo(context);

    for (int32 j = 0; j < profile.model.k; ++j) {
        pgkm_model_centroid(&profile.model, j, centroid);
        for (int32 f = 0; f < d; ++f) {
            const double spread = profile.spreads[f];
            const double mean = profile.means[f];
            PgkmValue deviations;

            CHECK_FOR_INTERRUPTS();
            if (profile.knows_deviations && spread > 0)
                deviations = float8_div(float8_mi(centroid[f], mean), spread);
            pgkm_result_put(result, {j, profile.names[f], centroid[f], mean, deviations,
                                     psprintf("%s: %s, overall %s", profile.names[f],
                                              profile_text(&profile, f, centroid[f], DIGITS), overall[f])});
        }
        MemoryContextReset(context);
    }
    MemoryContextSwitchTo(before);
    return (Datum)0;
}
