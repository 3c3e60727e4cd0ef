/*
 * options.cpp - the table of kmeans_options, and the argument k.
 */
#include "pg/kmeans/options.h"

#include <climits>

extern "C" {
#include "catalog/pg_type.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_options);
}

static const PgkmWord init_words[] = {{"k-means++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                      {"kmeans++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                      {"k-means||", PGKM_INIT_KMEANS_PARALLEL},
                                      {"random", PGKM_INIT_RANDOM},
                                      {"first", PGKM_INIT_FIRST}};
static const PgkmWord metric_words[] = {{"l2", PGKM_L2}, {"cosine", PGKM_COSINE}};

static const PgkmWords inits = {init_words, lengthof(init_words), "'k-means++', 'k-means||', 'random' or 'first'",
                                "'k-means++' takes rows far from one another, 'k-means||' does so for large k, "
                                "'random' takes any rows, 'first' the "
                                "first ones. Centroids of your own go into init_centroids."};

const PgkmWords pgkm_metrics = {metric_words, lengthof(metric_words), "'l2' or 'cosine'",
                                "'l2' is the Euclidean distance, 'cosine' that of directions."};

static const PgkmField fields[PGKM_KMEANS_OPTIONS] = {
    {"init", TEXTOID, PGKM_TAKES_WORD, offsetof(PgkmOptions, init), &inits},
    {"init_centroids", FLOAT8ARRAYOID, PGKM_TAKES_MATRIX, offsetof(PgkmOptions, init_centroids)},
    {"n_init", INT4OID, PGKM_TAKES_COUNT, offsetof(PgkmOptions, n_init)},
    {"max_iter", INT4OID, PGKM_TAKES_COUNT, offsetof(PgkmOptions, max_iter)},
    {"tol", FLOAT8OID, PGKM_TAKES_AMOUNT, offsetof(PgkmOptions, tol)},
    {"seed", INT8OID, PGKM_TAKES_SEED, offsetof(PgkmOptions, seed)},
    {"metric", TEXTOID, PGKM_TAKES_WORD, offsetof(PgkmOptions, metric), &pgkm_metrics},
    {"standardize", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmOptions, standardize)},
    {"refine", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmOptions, refine)}};

const PgkmOptionsType pgkm_kmeans_options_type = {{"kmeans_options", fields, lengthof(fields)},
                                                  [](void *options) { pgkm_options_default((PgkmOptions *)options); }};

/* kmeans_options(init, init_centroids, n_init, max_iter, tol, seed, metric, standardize, refine) -> kmeans_options */
Datum pgkm_kmeans_options(PG_FUNCTION_ARGS)
{
    return pgkm_options_make(fcinfo, &pgkm_kmeans_options_type);
}

int64 pgkm_check_k(const NullableDatum *k, const char *name)
{
    if (k->isnull)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be null", name)));

    const int64 value = DatumGetInt64(k->value);

    if (value < 1 || value > INT_MAX)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must be between 1 and %d", name, INT_MAX)));
    return value;
}

int64 pgkm_k_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
    return pgkm_check_k(&fcinfo->args[number], name);
}
