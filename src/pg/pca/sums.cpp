/*
 * sums.cpp - states of the aggregate pca made, checked and merged.
 */
#include "pg/pca/sums.h"

#include <algorithm>
#include <cmath>

#include "pg/aggregate/group_arguments.h"
#include "pg/pca/pca.h"

extern "C" {
#include "utils/float.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_pca_combine);
}

static Size sums_size(int32 d)
{
    const Size values = (Size)d + (Size)PcaSums::triangle(d) + (Size)PcaSums::capacity(d) * (d + 1);

    return offsetof(PcaSums, values) + values * sizeof(double);
}

PcaSums *pca_sums_create(MemoryContext context, int32 d, const PgkmPcaOptions *options)
{
    /* Below this no product can overflow. */
    if (d > 65536 || sums_size(d) > MaxAllocSize)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("the covariance of %s exceeds the maximum size of a value", pgkm_counted(d, "feature"))));

    PcaSums *const sums = pgkm_flat_create<PcaSums>(context, sums_size(d));

    sums->whiten = options->whiten != 0;
    sums->standardize = options->standardize != 0;
    sums->n_components = options->n_components;
    sums->d = d;
    return sums;
}

bool PcaSums::is_whole() const
{
    return d >= 1 && d <= 65536 && pending >= 0 && pending < PcaSums::capacity(d) && n >= 0 && n <= PGKM_MAX_ROWS &&
           whiten <= 1 && standardize <= 1 && VARSIZE(this) == sums_size(d);
}

static double sum_of_squares(PcaSums *sums, int32 f)
{
    return sums->cross()[PcaSums::triangle(f) + f];
}

/* A sum of products is finite where the sums of squares of both are. */
static void check_range(PcaSums *sums)
{
    for (int32 f = 0; f < sums->d; ++f)
        if (!std::isfinite(sum_of_squares(sums, f)))
            float_overflow_error();
}

static PgkmRowMoments moments_of(PcaSums *sums)
{
    return {sums->n, sums->mass, sums->d, sums->mean(), sums->cross()};
}

static void set_counts(PcaSums *sums, const PgkmRowMoments *moments)
{
    sums->n = moments->n;
    sums->mass = moments->mass;
}

void pca_sums_flush(PcaSums *sums)
{
    const double *const weights = sums->weights();
    const bool plain = std::all_of(weights, weights + sums->pending, [](double weight) { return weight == 1; });
    PgkmRowMoments moments = moments_of(sums);
    PgkmError error;

    if (sums->pending == 0)
        return;
    if (pgkm_moments_add(&moments, sums->waiting(), plain ? NULL : weights, sums->pending, pgkm_interrupted, &error) !=
        PGKM_OK)
        pgkm_raise(&error);
    set_counts(sums, &moments);
    memset(sums->waiting(), 0, (Size)sums->pending * sums->d * sizeof(double));
    memset(sums->weights(), 0, sums->pending * sizeof(double));
    sums->pending = 0;
    check_range(sums);
}

void pca_sums_check_options(const PcaSums *sums, const PgkmPcaOptions *options)
{
    const PgkmPcaOptions own = sums->options();

    pgkm_check_options(&pca_kind, &own, options);
}

/* NULL, or what is wrong with the numbers. */
static const char *complaint(PcaSums *sums)
{
    const double components = sums->n_components;
    const double *cross = sums->cross();

    if (components != 0 && !(components > 0 && components < 1) &&
        !(components >= 1 && components <= (double)PGKM_MAX_ROWS && components == std::floor(components)))
        return "An option is out of range.";
    if (sums->n < 1)
        return "There are no rows.";
    if (!(sums->mass > 0) || !std::isfinite(sums->mass))
        return "The sum of the weights is not a finite number above 0.";
    for (int64 i = 0; i < sums->d + PcaSums::triangle(sums->d); ++i)
        if (!std::isfinite(sums->values[i]))
            return "A sum is not finite.";
    for (int32 f = 0; f < sums->d; ++f)
        if (sum_of_squares(sums, f) < 0)
            return "A sum of squares is negative.";
    /* 2 |x y| <= x x + y y, but for rounding. */
    for (int32 a = 0; a < sums->d; ++a)
        for (int32 b = 0; b <= a; ++b, ++cross)
            if (std::fabs(*cross) / 2 > sum_of_squares(sums, a) / 3.999999 + sum_of_squares(sums, b) / 3.999999)
                return "A sum of products is larger than the sums of squares allow.";
    return NULL;
}

void pca_sums_check(PcaSums *sums)
{
    const char *const wrong = complaint(sums);

    if (wrong != NULL)
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("invalid state of aggregate %s", PcaSums::aggregate), errdetail("%s", wrong)));
}

/* The state without waiting rows: itself, or a copy that they were added to. */
static PcaSums *without_pending(PcaSums *sums)
{
    if (sums->pending == 0)
        return sums;

    PcaSums *const whole = (PcaSums *)pg_detoast_datum_copy((struct varlena *)sums);

    pca_sums_flush(whole);
    return whole;
}

/* Adds b's rows, from its moments, to a. An error unless d and the options are the same. */
static void merge(PcaSums *a, PcaSums *b)
{
    const PgkmPcaOptions options = b->options();
    PgkmError error;

    b = without_pending(b);
    pgkm_check_length(a->d, b->d);
    pca_sums_check_options(a, &options);
    pca_sums_flush(a);

    PgkmRowMoments moments = moments_of(a);
    const PgkmRowMoments other = moments_of(b);

    if (pgkm_moments_merge(&moments, &other, &error) != PGKM_OK)
        pgkm_raise(&error);
    set_counts(a, &moments);
    check_range(a);
}

/* pgkm_pca_combine(a bytea, b bytea) -> bytea */
Datum pgkm_pca_combine(PG_FUNCTION_ARGS)
{
    return pgkm_flat_combine<PcaSums>(fcinfo, merge);
}
