/*
 * sums.cpp - making, checking and merging values of type kmeans_sums.
 */
#include "pg/aggregate/sums.h"

#include <cmath>

#include "engine/api.h"

extern "C" {
#include "utils/float.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_sums_combine);
}

KmeansSums *sums_create(FunctionCallInfo fcinfo, int32 k, int32 d, uint64 fingerprint)
{
    /* k and d each fit an int32, so the count cannot overflow; the product with 16 can. */
    if (sums_count(k, d) > (int64)(MaxAllocSize - offsetof(KmeansSums, values)) / (int64)(2 * sizeof(double)))
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("kmeans_sums of %d clusters of %d features would exceed the maximum size of a value", k, d)));

    KmeansSums *const sums = pgkm_flat_create<KmeansSums>(fcinfo, sums_size(k, d));

    sums->k = k;
    sums->d = d;
    sums->fingerprint = fingerprint;
    return sums;
}

bool KmeansSums::is_whole() const
{
    return k >= 1 && d >= 1 && VARSIZE(this) == sums_size(k, d);
}

const char *sums_complaint(const KmeansSums *sums)
{
    const int64 count = sums_count(sums->k, sums->d);

    for (int64 i = 0; i < 2 * count; ++i)
        if (!std::isfinite(sums->values[i]))
            return "A sum is not finite.";
    if (sums->values[SUMS_INERTIA_INDEX] < 0)
        return "The inertia is negative.";
    for (int32 j = 0; j < sums->k; ++j)
        if (sums->values[SUMS_MASS_INDEX(j)] < 0)
            return "A mass is negative.";
    return NULL;
}

void sums_check_range(double high)
{
    if (!std::isfinite(high))
        float_overflow_error();
}

/* For each sum: a += b. 22023 unless both are sums over the same centroids. */
static void merge(KmeansSums *a, const KmeansSums *b)
{
    if (a->k != b->k || a->d != b->d)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("cannot merge kmeans_sums of %d x %d and of %d x %d centroids", a->k, a->d, b->k, b->d)));
    if (a->fingerprint != b->fingerprint)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("cannot merge kmeans_sums of different centroids")));

    if (b->n > PGKM_MAX_ROWS - a->n)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows to sum")));

    const int64 count = sums_count(a->k, a->d);
    double *low = a->values + count;

    for (int64 i = 0; i < count; ++i) {
        sums_add(&a->values[i], &low[i], b->values[i]);
        sums_add(&a->values[i], &low[i], b->values[count + i]);
        sums_check_range(a->values[i]);
    }
    a->n += b->n;
}

/* pgkm_sums_combine(a kmeans_sums, b kmeans_sums) -> kmeans_sums */
Datum pgkm_sums_combine(PG_FUNCTION_ARGS)
{
    return pgkm_flat_combine<KmeansSums>(fcinfo, merge);
}
