/*
 * given.cpp - kmeans_model(): a model from centroids alone, which another program has found, or somebody by hand.
 */
#include "pg/kmeans/model.h"

#include <algorithm>
#include <cmath>

extern "C" {
#include "utils/array.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_model);
}

enum GivenArgument { GIVEN_CENTROIDS, GIVEN_FEATURES, GIVEN_CENTER, GIVEN_SCALE, GIVEN_METRIC, GIVEN_SOURCES };

[[noreturn]] static void raise(const char *must)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid kmeans_model"), errdetail("%s", must)));
    pg_unreachable();
}

/* An array that is NULL or, as in a model, empty says nothing. */
static bool is_given(FunctionCallInfo fcinfo, int number)
{
    return !PG_ARGISNULL(number) && ARR_NDIM(PG_GETARG_ARRAYTYPE_P(number)) > 0;
}

/* d numbers; where none are given, `usual` for each beside others, or NULL. */
static const double *numbers_argument(FunctionCallInfo fcinfo, int number, const char *name, int32 d, bool is_needed,
                                      double usual)
{
    if (!is_given(fcinfo, number)) {
        if (!is_needed)
            return NULL;

        double *const numbers = (double *)palloc(d * sizeof(double));

        std::fill_n(numbers, d, usual);
        return numbers;
    }

    const double *const numbers = (const double *)pgkm_array_values(PG_GETARG_DATUM(number), {d});

    if (numbers == NULL || !pgkm_all_finite(numbers, d))
        raise(psprintf("%s must hold a finite value for each feature of centroids, which have %s.", name,
                       pgkm_counted(d, "feature")));
    return numbers;
}

/* Names of features, or what is known of them: an array of one dimension, without NULLs. Without `sources` names are of
 * numbers, or there is one, of a vector. */
static PgkmValue list_argument(FunctionCallInfo fcinfo, int number, const char *name, int32 d, bool are_whole)
{
    if (PG_ARGISNULL(number))
        return PgkmValue();

    ArrayType *const list = PG_GETARG_ARRAYTYPE_P(number);

    if (ARR_NDIM(list) != 1 || array_contains_nulls(list))
        raise(psprintf("%s must be an array of one dimension without nulls.", name));
    if (are_whole && ARR_DIMS(list)[0] != d && ARR_DIMS(list)[0] != 1)
        raise(psprintf(
            "%s must name each feature of centroids, which have %s, or one column that holds an array of them.", name,
            pgkm_counted(d, "feature")));
    return PointerGetDatum(list);
}

/* The clusters of metric cosine are directions, of length 1 to the digits of float32. */
static void make_directions(double *centroids, int32 k, int32 d)
{
    for (double *row = centroids; row < centroids + (Size)k * d; row += d) {
        double square = 0;

        for (int32 f = 0; f < d; ++f) {
            if (fabs(row[f]) > PGKM_MAX_MAGNITUDE)
                raise("centroids must hold values of magnitude 2^500 at most with metric 'cosine'.");
            square += row[f] * row[f];
        }
        if (fabs(square - 1) > 1e-6 && !pgkm_transform_row(row, d, NULL, NULL, PGKM_COSINE, PGKM_FLOAT64))
            raise("centroids must have no zero vectors with metric 'cosine', since these have no direction.");
    }
}

/*
 * kmeans_model(centroids, features, center, scale, metric, sources) -> kmeans_model: with clusters that stand for no
 * rows. 22004 for NULL centroids, 22023 for values that do not fit together.
 */
Datum pgkm_kmeans_model(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_model_tupdesc(fcinfo);
    ArrayType *const given = DatumGetArrayTypePCopy(pgkm_required(&fcinfo->args[GIVEN_CENTROIDS], "centroids"));
    PgkmRequest request = {};
    PgkmResult result = {};

    if (ARR_NDIM(given) != 2 || array_contains_nulls(given) ||
        !pgkm_all_finite((const double *)ARR_DATA_PTR(given), ArrayGetNItems(2, ARR_DIMS(given))))
        raise("centroids must be an array of k x d finite values.");
    result.k = ARR_DIMS(given)[0];
    result.d = request.points.d = ARR_DIMS(given)[1];
    result.centroids = (const double *)ARR_DATA_PTR(given);
    result.sizes = (const int64 *)palloc0(result.k * sizeof(int64));
    result.within_ss = (const double *)palloc0(result.k * sizeof(double));
    result.converged = 1;

    const bool has_units = is_given(fcinfo, GIVEN_CENTER) || is_given(fcinfo, GIVEN_SCALE);

    result.center = numbers_argument(fcinfo, GIVEN_CENTER, "center", result.d, has_units, 0);
    result.scale = numbers_argument(fcinfo, GIVEN_SCALE, "scale", result.d, has_units, 1);
    request.kmeans.metric =
        (PgkmMetric)pgkm_word_argument(&fcinfo->args[GIVEN_METRIC], "metric", &pgkm_metrics, PGKM_L2);
    if (request.kmeans.metric == PGKM_COSINE)
        make_directions((double *)ARR_DATA_PTR(given), result.k, result.d);

    const PgkmValue sources = list_argument(fcinfo, GIVEN_SOURCES, "sources", result.d, false);
    const PgkmValue features = list_argument(fcinfo, GIVEN_FEATURES, "features", result.d, sources.isnull);

    if (features.isnull && !sources.isnull)
        raise("sources must be null without features.");

    /* Where both are given, they are the means and deviations of the rows, as in a fit. */
    const bool knows_rows = is_given(fcinfo, GIVEN_CENTER) && is_given(fcinfo, GIVEN_SCALE);
    const PgkmValue means = pgkm_value_if(knows_rows, pgkm_array_or_empty(result.center, result.d));
    const PgkmValue deviations = pgkm_value_if(knows_rows, pgkm_array_or_empty(result.scale, result.d));
    const Datum model =
        pgkm_model_build(&result, &request, origin_given(tupdesc, features, sources, means, deviations), NULL, tupdesc);

    PgkmModel checked;

    pgkm_model_read(model, NULL, &checked);
    (void)pgkm_model_origin(model);
    PG_RETURN_DATUM(model);
}
