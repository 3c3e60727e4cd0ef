/*
 * options.cpp - kmeans_options: made by a function of that name, read from a composite.
 */
#include "pg/kmeans/options.h"

#include <climits>
#include <cmath>

#include "pg/compat.h"
#include "pg/values/composite.h"
#include "pg/values/datum.h"
#include "pg/values/options_kind.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_kmeans_options);
}

/* The fields of kmeans_options, which are the arguments of kmeans_options() too. */
enum OptionField {
    OPTION_INIT,
    OPTION_INIT_CENTROIDS,
    OPTION_N_INIT,
    OPTION_MAX_ITER,
    OPTION_TOL,
    OPTION_SEED,
    OPTION_METRIC,
    OPTION_STANDARDIZE,
    OPTION_COUNT
};

struct NamedInit {
    const char *name;
    PgkmInit    init;
};

/* The first name of a method is its canonical one. */
static const NamedInit init_methods[] = {{"k-means++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                         {"kmeans++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                         {"k-means||", PGKM_INIT_KMEANS_PARALLEL},
                                         {"random", PGKM_INIT_RANDOM},
                                         {"first", PGKM_INIT_FIRST}};

static const char *const metric_names[] = {"l2", "cosine"};

void pgkm_raise_option(const char *name, const char *takes, const char *hint)
{
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("option %s must be %s", name, takes),
                    hint == NULL ? 0 : errhint("%s", hint)));
    pg_unreachable();
}

static PgkmInit init_from_name(const char *name)
{
    for (const NamedInit &method : init_methods)
        if (strcmp(name, method.name) == 0)
            return method.init;
    pgkm_raise_option("init", "'k-means++', 'k-means||', 'random' or 'first'",
                      "'k-means++' takes rows far from one another, 'k-means||' does so for large k, 'random' takes any "
                      "rows, 'first' the first ones. Centroids of your own go into init_centroids.");
}

static const char *init_name(PgkmInit init)
{
    for (const NamedInit &method : init_methods)
        if (method.init == init)
            return method.name;
    return init_methods[0].name;
}

const char *pgkm_metric_name(PgkmMetric metric)
{
    return metric_names[metric];
}

bool pgkm_metric_from_name(const char *name, PgkmMetric *metric)
{
    for (int i = 0; i < (int) lengthof(metric_names); ++i)
        if (strcmp(name, metric_names[i]) == 0) {
            *metric = (PgkmMetric) i;
            return true;
        }
    return false;
}

/* init_centroids: a matrix of finite values; its shape against k and d is the fit's affair. */
static void read_init_centroids(Datum value, MemoryContext context, PgkmOptions *options)
{
    ArrayType *array = DatumGetArrayTypeP(value);

    if (ARR_NDIM(array) != 2)
        pgkm_raise_option("init_centroids", "a two-dimensional array (clusters x features)");
    if (array_contains_nulls(array))
        pgkm_raise_option("init_centroids", "an array without nulls");

    const Size    count = (Size) ARR_DIMS(array)[0] * ARR_DIMS(array)[1];
    double *const copy = (double *) MemoryContextAllocHuge(context, count * sizeof(double));

    memcpy(copy, ARR_DATA_PTR(array), count * sizeof(double));
    if (!pgkm_all_usable(copy, count))
        pgkm_raise_option("init_centroids", "an array of finite values of magnitude at most 2^500");
    options->init = PGKM_INIT_GIVEN;
    options->init_centroids = copy;
    options->init_rows = ARR_DIMS(array)[0];
    options->init_columns = ARR_DIMS(array)[1];
}

void pgkm_options_fields(const NullableDatum *fields, MemoryContext context, PgkmOptions *options)
{
    pgkm_options_default(options);
    if (!fields[OPTION_INIT].isnull)
        options->init = init_from_name(TextDatumGetCString(fields[OPTION_INIT].value));
    if (!fields[OPTION_INIT_CENTROIDS].isnull)
        read_init_centroids(fields[OPTION_INIT_CENTROIDS].value, context, options);
    if (!fields[OPTION_N_INIT].isnull)
        options->n_init = DatumGetInt32(fields[OPTION_N_INIT].value);
    if (!fields[OPTION_MAX_ITER].isnull)
        options->max_iter = DatumGetInt32(fields[OPTION_MAX_ITER].value);
    if (!fields[OPTION_TOL].isnull)
        options->tol = DatumGetFloat8(fields[OPTION_TOL].value);
    if (!fields[OPTION_SEED].isnull)
        options->seed = (uint64) DatumGetInt64(fields[OPTION_SEED].value);
    if (!fields[OPTION_METRIC].isnull &&
        !pgkm_metric_from_name(TextDatumGetCString(fields[OPTION_METRIC].value), &options->metric))
        pgkm_raise_option("metric", "'l2' or 'cosine'",
                          "'l2' is the Euclidean distance, 'cosine' that of directions.");
    if (!fields[OPTION_STANDARDIZE].isnull)
        options->standardize = DatumGetBool(fields[OPTION_STANDARDIZE].value) ? 1 : 0;

    if (options->n_init < 1)
        pgkm_raise_option("n_init", "at least 1");
    if (options->max_iter < 1)
        pgkm_raise_option("max_iter", "at least 1");
    if (!(options->tol >= 0) || std::isinf(options->tol))
        pgkm_raise_option("tol", "a finite number of at least 0");
}

static const Oid field_types[OPTION_COUNT] = {TEXTOID,   FLOAT8ARRAYOID, INT4OID, INT4OID,
                                              FLOAT8OID, INT8OID,        TEXTOID, BOOLOID};
static const PgkmCompositeType options_type = {"kmeans_options", field_types, OPTION_COUNT};

/*
 * kmeans_options(init, init_centroids, n_init, max_iter, tol, seed, metric, standardize):
 * checks the values and returns them as a row, with defaults in place of NULLs.
 */
Datum pgkm_kmeans_options(PG_FUNCTION_ARGS)
{
    const TupleDesc tupdesc = pgkm_result_tupdesc(fcinfo, &options_type);
    PgkmOptions     options;
    Datum           values[OPTION_COUNT];
    bool            nulls[OPTION_COUNT] = {false};

    pgkm_options_fields(fcinfo->args, CurrentMemoryContext, &options);

    /* The method by its name as given or by default, even when init_centroids override it. */
    values[OPTION_INIT] =
        CStringGetTextDatum(PG_ARGISNULL(OPTION_INIT)
                                ? init_methods[0].name
                                : init_name(init_from_name(TextDatumGetCString(PG_GETARG_DATUM(OPTION_INIT)))));
    nulls[OPTION_INIT_CENTROIDS] = PG_ARGISNULL(OPTION_INIT_CENTROIDS);
    values[OPTION_INIT_CENTROIDS] = PG_GETARG_DATUM(OPTION_INIT_CENTROIDS);
    values[OPTION_N_INIT] = Int32GetDatum(options.n_init);
    values[OPTION_MAX_ITER] = Int32GetDatum(options.max_iter);
    values[OPTION_TOL] = Float8GetDatum(options.tol);
    values[OPTION_SEED] = Int64GetDatum((int64) options.seed);
    values[OPTION_METRIC] = CStringGetTextDatum(pgkm_metric_name(options.metric));
    values[OPTION_STANDARDIZE] = BoolGetDatum(options.standardize != 0);
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

void pgkm_options_read(Datum composite, MemoryContext context, PgkmOptions *options)
{
    NullableDatum fields[OPTION_COUNT];

    pgkm_read_fields(composite, &options_type, fields);
    pgkm_options_fields(fields, context, options);
}

void pgkm_options_argument(FunctionCallInfo fcinfo, int number, MemoryContext context, PgkmOptions *options)
{
    if (PG_NARGS() <= number || PG_ARGISNULL(number))
        pgkm_options_default(options);
    else
        pgkm_options_read(PG_GETARG_DATUM(number), context, options);
}

int64 pgkm_check_k(bool isnull, int64 k, const char *name)
{
    if (isnull)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must not be null", name)));
    if (k < 1 || k > INT_MAX)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must be between 1 and %d", name, INT_MAX)));
    return k;
}

int64 pgkm_k_argument(FunctionCallInfo fcinfo, int number, const char *name)
{
    const bool isnull = PG_ARGISNULL(number);

    return pgkm_check_k(isnull, isnull ? 0 : PG_GETARG_INT64(number), name);
}

/* --- as options of a group --- */

static void set_default(PgkmAnyOptions *options)
{
    pgkm_options_default(&options->kmeans);
}

static void read(Datum composite, MemoryContext context, PgkmAnyOptions *options)
{
    pgkm_options_read(composite, context, &options->kmeans);
}

static Size arrays_size(const PgkmAnyOptions *options)
{
    const int32 shape[] = {options->kmeans.init_rows, options->kmeans.init_columns};

    return options->kmeans.init == PGKM_INIT_GIVEN ? pgkm_array_size(shape, lengthof(shape)) : 0;
}

static void write_arrays(const PgkmAnyOptions *options, char *to)
{
    if (options->kmeans.init == PGKM_INIT_GIVEN)
        memcpy(to, options->kmeans.init_centroids, arrays_size(options));
}

static void attach_arrays(PgkmAnyOptions *options, const char *arrays)
{
    options->kmeans.init_centroids = (const double *) arrays;
}

static bool same(const PgkmAnyOptions *left, const PgkmAnyOptions *right)
{
    const PgkmOptions *const a = &left->kmeans;
    const PgkmOptions *const b = &right->kmeans;

    if (a->init != b->init || a->n_init != b->n_init || a->max_iter != b->max_iter || a->tol != b->tol ||
        a->seed != b->seed || a->metric != b->metric || a->standardize != b->standardize)
        return false;
    return a->init != PGKM_INIT_GIVEN ||
           (a->init_rows == b->init_rows && a->init_columns == b->init_columns &&
            memcmp(a->init_centroids, b->init_centroids, arrays_size(left)) == 0);
}

static bool are_valid(const PgkmAnyOptions *any)
{
    const PgkmOptions *const options = &any->kmeans;

    return options->init >= PGKM_INIT_KMEANS_PLUS_PLUS && options->init <= PGKM_INIT_GIVEN && options->n_init >= 1 &&
           options->max_iter >= 1 && options->tol >= 0 && !std::isinf(options->tol) &&
           (options->metric == PGKM_L2 || options->metric == PGKM_COSINE) &&
           (options->standardize == 0 || options->standardize == 1) &&
           pgkm_all_usable(options->init_centroids, arrays_size(any) / sizeof(double));
}

const PgkmOptionsKind pgkm_kmeans_options_kind = {set_default,  read,          same,     arrays_size,
                                                  write_arrays, attach_arrays, are_valid};

/* --- for those of all algorithms --- */

Size pgkm_array_size(const int32 *extents, int count)
{
    Size size = sizeof(double);

    for (int i = 0; i < count; ++i) {
        if (extents[i] < 1 || size > SIZE_MAX / extents[i])
            return SIZE_MAX;
        size *= extents[i];
    }
    return size;
}

bool pgkm_all_usable(const double *values, Size count)
{
    for (Size i = 0; i < count; ++i)
        if (!(std::fabs(values[i]) <= PGKM_MAX_MAGNITUDE))
            return false;
    return true;
}
