/*
 * options.cpp - the table of gmm_options.
 */
#include "pg/gmm/gmm.h"

extern "C" {
#include "catalog/pg_type.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_options);
}

static const PgkmWord covariance_words[] = {{"full", PGKM_COVARIANCE_FULL},
                                            {"tied", PGKM_COVARIANCE_TIED},
                                            {"diag", PGKM_COVARIANCE_DIAG},
                                            {"spherical", PGKM_COVARIANCE_SPHERICAL}};

const PgkmWords pgkm_covariances = {
    covariance_words, lengthof(covariance_words), "'full', 'tied', 'diag' or 'spherical'",
    "'full' is a matrix for each component, 'tied' one matrix for all, 'diag' a variance for each feature of each "
    "component, 'spherical' one variance for each component."};

static const PgkmField fields[] = {
    {"covariance_type", TEXTOID, PGKM_TAKES_WORD, offsetof(PgkmMixtureOptions, covariance_type), &pgkm_covariances},
    {"tol", FLOAT8OID, PGKM_TAKES_AMOUNT, offsetof(PgkmMixtureOptions, tol)},
    {"reg_covar", FLOAT8OID, PGKM_TAKES_AMOUNT, offsetof(PgkmMixtureOptions, reg_covar)},
    {"max_iter", INT4OID, PGKM_TAKES_COUNT, offsetof(PgkmMixtureOptions, max_iter)},
    {"n_init", INT4OID, PGKM_TAKES_COUNT, offsetof(PgkmMixtureOptions, n_init)},
    {"weights_init", FLOAT8ARRAYOID, PGKM_TAKES_ARRAY, offsetof(PgkmMixtureOptions, weights_init)},
    {"means_init", FLOAT8ARRAYOID, PGKM_TAKES_ARRAY, offsetof(PgkmMixtureOptions, means_init)},
    {"precisions_init", FLOAT8ARRAYOID, PGKM_TAKES_ARRAY, offsetof(PgkmMixtureOptions, precisions_init)},
    {"seed", INT8OID, PGKM_TAKES_SEED, offsetof(PgkmMixtureOptions, seed)},
    {"standardize", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmMixtureOptions, standardize)}};

static const PgkmOptionsType type = {{"gmm_options", fields, lengthof(fields)}, [](void *options) {
                                         pgkm_mixture_options_default((PgkmMixtureOptions *)options);
                                     }};

static const char *const of_one_k[] = {"weights_init", "means_init", "precisions_init", NULL};

const FitKind gmm_kind = {PGKM_MIXTURE,          "gmm", &type, true,    pgkm_gmm_model_tupdesc, pgkm_gmm_check_size,
                          pgkm_gmm_model_of_fit, NULL,  NULL,  of_one_k};

/* gmm_options(covariance_type, tol, reg_covar, max_iter, n_init, weights_init, means_init, precisions_init, seed,
 *             standardize) -> gmm_options */
Datum pgkm_gmm_options(PG_FUNCTION_ARGS)
{
    return pgkm_options_make(fcinfo, &type);
}
