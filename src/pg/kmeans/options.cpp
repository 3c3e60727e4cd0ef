/*
 * options.cpp - the table of kmeans_options, and what options mean for a call.
 */
#include "pg/kmeans/model.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_options);
}

static const PgkmWord init_words[] = {{"auto", PGKM_INIT_AUTO},
                                      {"kmeans++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                      {"k-means++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                      {"k-means||", PGKM_INIT_KMEANS_PARALLEL},
                                      {"random", PGKM_INIT_RANDOM},
                                      {"first", PGKM_INIT_FIRST},
                                      {"optimal", PGKM_INIT_OPTIMAL}};
static const PgkmWord metric_words[] = {{"l2", PGKM_L2}, {"cosine", PGKM_COSINE}, {"hamming", PGKM_HAMMING}};

static const PgkmWords inits = {init_words, lengthof(init_words),
                                "'auto', 'k-means++', 'k-means||', 'random', 'first' or 'optimal'",
                                "'auto' is 'k-means++', and 'k-means||' where rows x features x k pass 2^33. "
                                "'k-means++' takes rows far from one another, 'k-means||' does so for large k, "
                                "'random' takes any rows, 'first' the "
                                "first ones, 'optimal' the best clusters of one feature. "
                                "Centroids of your own go into init_centroids."};

const PgkmWords pgkm_metrics = {metric_words, lengthof(metric_words), "'l2', 'cosine' or 'hamming'",
                                "'l2' is the Euclidean distance, 'cosine' that of directions, 'hamming' the number of "
                                "bits that differ."};

static void read_model(Datum value, MemoryContext context, void *to)
{
    PgkmModel model;

    if (pgkm_model_is_null(value)) /* as PL/pgSQL passes a variable without a value */
        return;
    pgkm_model_read(value, context, &model);

    const bool was_standardized = pgkm_model_origin(value).was_standardized;
    PgkmGivenModel *const given = (PgkmGivenModel *)to;

    given->centroids = {model.centroids, 2, {model.k, model.d}};
    given->metric = model.metric;
    fit_give_units(given, model.center, model.scale, was_standardized, context);
}

/* Its place among the fields. */
#define OPTION_INIT_MODEL 12

static const PgkmField fields[] = {
    {"init", TEXTOID, PGKM_TAKES_WORD, offsetof(PgkmOptions, init), &inits},
    {"init_centroids", FLOAT8ARRAYOID, PGKM_TAKES_MATRIX, offsetof(PgkmOptions, init_centroids)},
    {"n_init", INT4OID, PGKM_TAKES_COUNT, offsetof(PgkmOptions, n_init)},
    {"max_iter", INT4OID, PGKM_TAKES_COUNT, offsetof(PgkmOptions, max_iter)},
    {"tol", FLOAT8OID, PGKM_TAKES_AMOUNT, offsetof(PgkmOptions, tol)},
    {"seed", INT8OID, PGKM_TAKES_SEED, offsetof(PgkmOptions, seed)},
    {"metric", TEXTOID, PGKM_TAKES_WORD, offsetof(PgkmOptions, metric), &pgkm_metrics},
    {"standardize", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmOptions, standardize)},
    {"refine", BOOLOID, PGKM_TAKES_SWITCH, offsetof(PgkmOptions, refine)},
    {"min_size", FLOAT8OID, PGKM_TAKES_SHARE, offsetof(PgkmOptions, min_size)},
    {"max_size", FLOAT8OID, PGKM_TAKES_SHARE, offsetof(PgkmOptions, max_size)},
    {"batch_size", INT4OID, PGKM_TAKES_SIZE, offsetof(PgkmOptions, batch_size)},
    {"init_model", InvalidOid, PGKM_TAKES_MODEL, offsetof(PgkmOptions, init_model), NULL, read_model},
    {"max_radius", FLOAT8OID, PGKM_TAKES_AMOUNT, offsetof(PgkmOptions, max_radius)},
    {"min_sizes", FLOAT8ARRAYOID, PGKM_TAKES_SHARES, offsetof(PgkmOptions, min_sizes)},
    {"max_sizes", FLOAT8ARRAYOID, PGKM_TAKES_SHARES, offsetof(PgkmOptions, max_sizes)},
    {"min_weight", FLOAT8OID, PGKM_TAKES_WEIGHT, offsetof(PgkmOptions, min_weight)},
    {"max_weight", FLOAT8OID, PGKM_TAKES_WEIGHT, offsetof(PgkmOptions, max_weight)},
    {"min_weights", FLOAT8ARRAYOID, PGKM_TAKES_WEIGHTS, offsetof(PgkmOptions, min_weights)},
    {"max_weights", FLOAT8ARRAYOID, PGKM_TAKES_WEIGHTS, offsetof(PgkmOptions, max_weights)}};

/* Metric and units are those of a model from which a fit goes on. */
static void settle(void *any)
{
    PgkmOptions *const options = (PgkmOptions *)any;
    const PgkmGivenModel *const model = &options->init_model;
    const bool standardized = model->center.dimensions > 0;
    const char *const bound = pgkm_bound_given(options);

    if (options->refine != 0 && options->batch_size > 0)
        pgkm_raise_option("refine", "false or null with batch_size");
    if (bound != NULL && options->batch_size > 0)
        pgkm_raise_option("batch_size", psprintf("null with %s", bound));
    if (options->max_radius > 0 && (bound != NULL || options->batch_size > 0))
        pgkm_raise_option("max_radius", psprintf("0 or null with %s", bound != NULL ? bound : "batch_size"));
    if (options->min_size != 0 && options->min_sizes.dimensions > 0)
        pgkm_raise_option("min_sizes", "null with min_size");
    if (options->max_size != 0 && options->max_sizes.dimensions > 0)
        pgkm_raise_option("max_sizes", "null with max_size");
    if (options->min_weight != 0 && options->min_weights.dimensions > 0)
        pgkm_raise_option("min_weights", "null with min_weight");
    if (options->max_weight != 0 && options->max_weights.dimensions > 0)
        pgkm_raise_option("max_weights", "null with max_weight");
    if ((options->init == PGKM_INIT_FIRST || options->init == PGKM_INIT_OPTIMAL) && options->batch_size > 0)
        pgkm_raise_option("init", "'k-means++', 'k-means||' or 'random' with batch_size");
    if (model->centroids.dimensions == 0)
        return;
    if (options->init_centroids.dimensions > 0)
        pgkm_raise_option("init_centroids", "null with init_model");
    if (options->metric != PGKM_L2 && options->metric != model->metric)
        pgkm_raise_option("metric", psprintf("'l2' or null with an init_model of metric %s",
                                             pgkm_word_of(&pgkm_metrics, model->metric)));
    if (options->standardize != 0 && !standardized)
        pgkm_raise_option("standardize", "false or null with an init_model that is not standardized");
    options->metric = model->metric;
    options->standardize = standardized ? 1 : 0;
}

static const PgkmOptionsType type = {{"kmeans_options", fields, lengthof(fields)},
                                     [](void *options) { pgkm_options_default((PgkmOptions *)options); },
                                     settle};

/* The features of a model from which the fit goes on are those of the call. */
static void note_options(TableCall *call, const NullableDatum *given)
{
    const PgkmOptions *const options = &call->request.kmeans;

    if (!given[OPTION_INIT_MODEL].isnull)
        table_call_take_model(call, pgkm_model_origin(given[OPTION_INIT_MODEL].value).sources);
    /* Standardized rows are others: what is zero then the engine alone sees. */
    call->need_direction = options->metric == PGKM_COSINE && options->standardize == 0;
}

/* The first rows are those of the executor, batches are drawn here, and the optimum, bounds of sizes and a radius
 * concern all rows at once. */
static const char *needs_all_rows(const PgkmRequest *request)
{
    const PgkmOptions *const options = &request->kmeans;

    if (options->init == PGKM_INIT_FIRST)
        return "init => 'first'";
    if (options->init == PGKM_INIT_OPTIMAL)
        return "init => 'optimal'";
    if (options->batch_size != 0)
        return "batch_size";
    return options->max_radius != 0 ? "max_radius" : pgkm_bound_given(options);
}

static const char *const of_one_k[] = {"init_centroids", "init_model",  "max_radius",  "min_sizes",
                                       "max_sizes",      "min_weights", "max_weights", NULL};

const FitKind kmeans_kind = {PGKM_KMEANS,           "kmeans",          &type,        true,           pgkm_model_tupdesc,
                             pgkm_model_check_size, pgkm_model_of_fit, note_options, needs_all_rows, of_one_k};

/* kmeans_options(init, init_centroids, n_init, ..., refine, batch_size, init_model, ...) -> kmeans_options */
Datum pgkm_kmeans_options(PG_FUNCTION_ARGS)
{
    return pgkm_options_make(fcinfo, &type);
}
