/*
 * options.cpp - gmm_options: made by a function of that name, read from a composite.
 */
#include "pg/gmm/gmm.h"

#include <cmath>

#include "pg/compat.h"
#include "pg/values/composite.h"
#include "pg/values/datum.h"
#include "pg/kmeans/options.h"
#include "pg/values/options_kind.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(pgkm_gmm_options);
}

/* The fields of gmm_options, which are the arguments of gmm_options() too. */
enum GmmOptionField {
    OPTION_COVARIANCE_TYPE,
    OPTION_TOL,
    OPTION_REG_COVAR,
    OPTION_MAX_ITER,
    OPTION_N_INIT,
    OPTION_WEIGHTS_INIT,
    OPTION_MEANS_INIT,
    OPTION_PRECISIONS_INIT,
    OPTION_SEED
};

static_assert(OPTION_SEED + 1 == GMM_OPTION_COUNT, "fields of gmm_options");

static const Oid field_types[GMM_OPTION_COUNT] = {TEXTOID,        FLOAT8OID,      FLOAT8OID,
                                                  INT4OID,        INT4OID,        FLOAT8ARRAYOID,
                                                  FLOAT8ARRAYOID, FLOAT8ARRAYOID, INT8OID};
static const PgkmCompositeType options_type = {"gmm_options", field_types, GMM_OPTION_COUNT};

bool pgkm_covariance_from_name(const char *name, PgkmCovariance *type)
{
    for (int i = PGKM_COVARIANCE_FULL; i <= PGKM_COVARIANCE_SPHERICAL; ++i)
        if (strcmp(name, pgkm_covariance_name((PgkmCovariance) i)) == 0) {
            *type = (PgkmCovariance) i;
            return true;
        }
    return false;
}

/* An array of finite values; its shape against k and d is the fit's affair. */
static void read_given(const char *name, Datum value, MemoryContext context, PgkmGiven *given)
{
    ArrayType *const array = DatumGetArrayTypeP(value);

    if (ARR_NDIM(array) < 1 || ARR_NDIM(array) > 3)
        pgkm_raise_option(name, "an array of one to three dimensions");
    if (array_contains_nulls(array))
        pgkm_raise_option(name, "an array without nulls");

    const Size    count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
    double *const copy = (double *) MemoryContextAllocHuge(context, count * sizeof(double));

    memcpy(copy, ARR_DATA_PTR(array), count * sizeof(double));
    if (!pgkm_all_usable(copy, count))
        pgkm_raise_option(name, "an array of finite values of magnitude at most 2^500");
    given->values = copy;
    given->dimensions = ARR_NDIM(array);
    for (int i = 0; i < given->dimensions; ++i)
        given->extent[i] = ARR_DIMS(array)[i];
}

static double read_positive(const char *name, Datum value)
{
    const double number = DatumGetFloat8(value);

    if (!(number >= 0) || std::isinf(number))
        pgkm_raise_option(name, "a finite number of at least 0");
    return number;
}

static int32 read_count(const char *name, Datum value)
{
    if (DatumGetInt32(value) < 1)
        pgkm_raise_option(name, "at least 1");
    return DatumGetInt32(value);
}

void pgkm_gmm_options_fields(const NullableDatum *fields, MemoryContext context, PgkmMixtureOptions *options)
{
    pgkm_mixture_options_default(options);
    if (!fields[OPTION_COVARIANCE_TYPE].isnull &&
        !pgkm_covariance_from_name(TextDatumGetCString(fields[OPTION_COVARIANCE_TYPE].value),
                                   &options->covariance_type))
        pgkm_raise_option("covariance_type", "'full', 'tied', 'diag' or 'spherical'",
                          "'full' is a matrix for each component, 'tied' one matrix for all, 'diag' a variance for each "
                          "feature of each component, 'spherical' one variance for each component.");
    if (!fields[OPTION_TOL].isnull)
        options->tol = read_positive("tol", fields[OPTION_TOL].value);
    if (!fields[OPTION_REG_COVAR].isnull)
        options->reg_covar = read_positive("reg_covar", fields[OPTION_REG_COVAR].value);
    if (!fields[OPTION_MAX_ITER].isnull)
        options->max_iter = read_count("max_iter", fields[OPTION_MAX_ITER].value);
    if (!fields[OPTION_N_INIT].isnull)
        options->n_init = read_count("n_init", fields[OPTION_N_INIT].value);
    if (!fields[OPTION_WEIGHTS_INIT].isnull)
        read_given("weights_init", fields[OPTION_WEIGHTS_INIT].value, context, &options->weights_init);
    if (!fields[OPTION_MEANS_INIT].isnull)
        read_given("means_init", fields[OPTION_MEANS_INIT].value, context, &options->means_init);
    if (!fields[OPTION_PRECISIONS_INIT].isnull)
        read_given("precisions_init", fields[OPTION_PRECISIONS_INIT].value, context, &options->precisions_init);
    if (!fields[OPTION_SEED].isnull)
        options->seed = (uint64) DatumGetInt64(fields[OPTION_SEED].value);
}

/* gmm_options(...): checks the values and returns them as a row, with defaults in place of NULLs. */
Datum pgkm_gmm_options(PG_FUNCTION_ARGS)
{
    const TupleDesc    tupdesc = pgkm_result_tupdesc(fcinfo, &options_type);
    PgkmMixtureOptions options;
    Datum              values[GMM_OPTION_COUNT];
    bool               nulls[GMM_OPTION_COUNT] = {false};

    pgkm_gmm_options_fields(fcinfo->args, CurrentMemoryContext, &options);
    for (int i = OPTION_WEIGHTS_INIT; i <= OPTION_PRECISIONS_INIT; ++i) {
        nulls[i] = PG_ARGISNULL(i);
        values[i] = PG_GETARG_DATUM(i);
    }
    values[OPTION_COVARIANCE_TYPE] = CStringGetTextDatum(pgkm_covariance_name(options.covariance_type));
    values[OPTION_TOL] = Float8GetDatum(options.tol);
    values[OPTION_REG_COVAR] = Float8GetDatum(options.reg_covar);
    values[OPTION_MAX_ITER] = Int32GetDatum(options.max_iter);
    values[OPTION_N_INIT] = Int32GetDatum(options.n_init);
    values[OPTION_SEED] = Int64GetDatum((int64) options.seed);
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/* --- as options of a group --- */

static void set_default(PgkmAnyOptions *options)
{
    pgkm_mixture_options_default(&options->mixture);
}

static void read(Datum composite, MemoryContext context, PgkmAnyOptions *options)
{
    NullableDatum fields[GMM_OPTION_COUNT];

    pgkm_read_fields(composite, &options_type, fields);
    pgkm_gmm_options_fields(fields, context, &options->mixture);
}

/* Without dimensions there is no array. */
static Size given_size(const PgkmGiven *given)
{
    if (given->dimensions < 0 || given->dimensions > (int32) lengthof(given->extent))
        return SIZE_MAX;
    return given->dimensions == 0 ? 0 : pgkm_array_size(given->extent, given->dimensions);
}

static bool same_given(const PgkmGiven *a, const PgkmGiven *b)
{
    const Size size = given_size(a);

    return a->dimensions == b->dimensions && memcmp(a->extent, b->extent, sizeof a->extent) == 0 &&
           size == given_size(b) && (size == 0 || memcmp(a->values, b->values, size) == 0);
}

static bool same(const PgkmAnyOptions *left, const PgkmAnyOptions *right)
{
    const PgkmMixtureOptions *const a = &left->mixture;
    const PgkmMixtureOptions *const b = &right->mixture;

    return a->covariance_type == b->covariance_type && a->tol == b->tol && a->reg_covar == b->reg_covar &&
           a->max_iter == b->max_iter && a->n_init == b->n_init && a->seed == b->seed &&
           same_given(&a->weights_init, &b->weights_init) && same_given(&a->means_init, &b->means_init) &&
           same_given(&a->precisions_init, &b->precisions_init);
}

static Size arrays_size(const PgkmAnyOptions *options)
{
    const PgkmMixtureOptions *const mixture = &options->mixture;
    const PgkmGiven *const          all[] = {&mixture->weights_init, &mixture->means_init, &mixture->precisions_init};
    Size                            size = 0;

    for (const PgkmGiven *given : all) {
        if (given_size(given) > SIZE_MAX - size)
            return SIZE_MAX;
        size += given_size(given);
    }
    return size;
}

static void write_arrays(const PgkmAnyOptions *options, char *to)
{
    const PgkmMixtureOptions *const mixture = &options->mixture;
    const PgkmGiven *const          all[] = {&mixture->weights_init, &mixture->means_init, &mixture->precisions_init};

    for (const PgkmGiven *given : all) {
        if (given->values != NULL)
            memcpy(to, given->values, given_size(given));
        to += given_size(given);
    }
}

static void attach_arrays(PgkmAnyOptions *options, const char *arrays)
{
    PgkmMixtureOptions *const mixture = &options->mixture;
    PgkmGiven *const          all[] = {&mixture->weights_init, &mixture->means_init, &mixture->precisions_init};

    for (PgkmGiven *given : all) {
        given->values = given->dimensions > 0 ? (const double *) arrays : NULL;
        if (arrays != NULL)
            arrays += given_size(given);
    }
}

static bool are_valid(const PgkmAnyOptions *any)
{
    const PgkmMixtureOptions *const options = &any->mixture;
    const PgkmGiven *const          all[] = {&options->weights_init, &options->means_init, &options->precisions_init};
    bool valid = options->covariance_type >= PGKM_COVARIANCE_FULL &&
                 options->covariance_type <= PGKM_COVARIANCE_SPHERICAL && options->tol >= 0 &&
                 !std::isinf(options->tol) && options->reg_covar >= 0 && !std::isinf(options->reg_covar) &&
                 options->max_iter >= 1 && options->n_init >= 1;

    for (const PgkmGiven *given : all)
        valid = valid && pgkm_all_usable(given->values, given_size(given) / sizeof(double));
    return valid;
}

const PgkmOptionsKind pgkm_mixture_options_kind = {set_default,  read,          same,     arrays_size,
                                                   write_arrays, attach_arrays, are_valid};
