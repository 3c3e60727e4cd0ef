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
    {"standardize", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmMixtureOptions, standardize)},
    {"init_model", InvalidOid, PGKM_TAKES_MODEL, offsetof(PgkmMixtureOptions, init_model), NULL, pgkm_gmm_model_give}};

/* The type of covariances and the units are those of a model from which a fit goes on. */
static void settle(void *any)
{
    PgkmMixtureOptions *const options = (PgkmMixtureOptions *)any;
    const PgkmGivenModel *const model = &options->init_model;
    const bool standardized = model->center.dimensions > 0;

    if (model->centroids.dimensions == 0)
        return;
    for (const PgkmField &field : fields)
        if (field.takes == PGKM_TAKES_ARRAY && ((PgkmGiven *)((char *)any + field.offset))->dimensions > 0)
            pgkm_raise_option(field.name, "null with init_model");
    if (options->covariance_type != PGKM_COVARIANCE_FULL && options->covariance_type != model->covariance_type)
        pgkm_raise_option("covariance_type", "null, or that of init_model");
    if (options->standardize != 0 && !standardized)
        pgkm_raise_option("standardize", "false or null with an init_model that is not standardized");
    options->covariance_type = model->covariance_type;
    options->standardize = standardized ? 1 : 0;
}

static const PgkmOptionsType type = {{"gmm_options", fields, lengthof(fields)},
                                     [](void *options) { pgkm_mixture_options_default((PgkmMixtureOptions *)options); },
                                     settle};

/* The k of a model from which the fit goes on is that of the call, and so are its features. */
static void note_options(TableCall *call, const NullableDatum *given)
{
    const NullableDatum *const model = &given[lengthof(fields) - 1];
    const PgkmGiven *const means = &call->request.mixture.init_model.centroids;
    const int64 k = call->request.k;

    if (!model->isnull)
        table_call_take_model(call, pgkm_gmm_model_origin(model->value).sources);
    if (k != 0 && means->dimensions > 0 && means->extent[0] != k)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be that of init_model, which is %d, not %lld", means->extent[0], (long long)k),
                        errhint("A fit goes on with the components of the model.")));
}

static const char *const of_one_k[] = {"weights_init", "means_init", "precisions_init", "init_model", NULL};

const FitKind gmm_kind = {
    PGKM_MIXTURE,          "gmm",        &type, true,    pgkm_gmm_model_tupdesc, pgkm_gmm_check_size,
    pgkm_gmm_model_of_fit, note_options, NULL,  of_one_k};

/* gmm_options(covariance_type, tol, reg_covar, max_iter, n_init, weights_init, means_init, precisions_init, seed,
 *             standardize, init_model) -> gmm_options */
Datum pgkm_gmm_options(PG_FUNCTION_ARGS)
{
    return pgkm_options_make(fcinfo, &type);
}
