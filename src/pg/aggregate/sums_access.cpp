/*
 * sums_access.cpp - the parts of a kmeans_sums as SQL values.
 */
#include "pg/aggregate/sums.h"

#include "pg/values/datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(pgkm_sums_centroids);
PG_FUNCTION_INFO_V1(pgkm_sums_masses);
PG_FUNCTION_INFO_V1(pgkm_sums_features);
PG_FUNCTION_INFO_V1(pgkm_sums_inertia);
}

/* 22003 where it is beyond the range of double precision: a mass may be next to nothing. */
static double mean_of(double sum, double mass)
{
    const double mean = sum / mass;

    sums_check_range(mean);
    return mean;
}

/* kmeans_sums_centroids(sums): the k x d means; a cluster without mass has no mean, its row is NULLs. */
Datum pgkm_sums_centroids(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = pgkm_flat_argument<KmeansSums>(fcinfo, 0);
    const Size count = (Size)sums->k * sums->d;
    Datum *values = (Datum *)palloc(count * sizeof(Datum));
    bool *nulls = (bool *)palloc0(count * sizeof(bool));
    int extents[2] = {sums->k, sums->d};
    int lower[2] = {1, 1};

    for (int32 j = 0; j < sums->k; ++j) {
        const double mass = sums->values[SUMS_MASS_INDEX(j)];
        const double *row = sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, j);

        for (int32 i = 0; i < sums->d; ++i) {
            const Size at = (Size)j * sums->d + i;

            nulls[at] = mass == 0;
            values[at] = Float8GetDatum(nulls[at] ? 0 : mean_of(row[i], mass));
        }
    }
    PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, 2, extents, lower, FLOAT8OID, sizeof(float8),
                                             FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/* kmeans_sums_masses(sums): k row counts, or sums of weights. */
Datum pgkm_sums_masses(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = pgkm_flat_argument<KmeansSums>(fcinfo, 0);

    PG_RETURN_DATUM(pgkm_array(sums->values + SUMS_MASS_INDEX(0), {sums->k}));
}

/* kmeans_sums_features(sums): the k x d (weighted) sums of each feature over each cluster. */
Datum pgkm_sums_features(PG_FUNCTION_ARGS)
{
    const KmeansSums *sums = pgkm_flat_argument<KmeansSums>(fcinfo, 0);

    PG_RETURN_DATUM(pgkm_array(sums->values + SUMS_FEATURE_INDEX(sums->k, sums->d, 0), {sums->k, sums->d}));
}

/* kmeans_sums_inertia(sums): the (weighted) sum of squared distances to the nearest centroids. */
Datum pgkm_sums_inertia(PG_FUNCTION_ARGS)
{
    PG_RETURN_FLOAT8(pgkm_flat_argument<KmeansSums>(fcinfo, 0)->values[SUMS_INERTIA_INDEX]);
}
