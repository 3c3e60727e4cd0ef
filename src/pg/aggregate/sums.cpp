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

KmeansSums *sums_create(int32 k, int32 d, uint64 fingerprint)
{
    /* k and d each fit an int32, so the count cannot overflow; the product with 16 can. */
    if (sums_count(k, d) > (int64) (MaxAllocSize - offsetof(KmeansSums, values)) / (int64) (2 * sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("kmeans_sums of %d clusters of %d features would exceed the maximum size of a value",
                               k, d)));

    const Size  size = sums_size(k, d);
    KmeansSums *sums = (KmeansSums *) palloc0(size);

    SET_VARSIZE(sums, size);
    sums->version = KMEANS_SUMS_VERSION;
    sums->k = k;
    sums->d = d;
    sums->fingerprint = fingerprint;
    return sums;
}

KmeansSums *sums_argument(FunctionCallInfo fcinfo, int number, bool copy)
{
    const Datum value = PG_GETARG_DATUM(number);
    KmeansSums *sums = (KmeansSums *) (copy ? PG_DETOAST_DATUM_COPY(value) : PG_DETOAST_DATUM(value));

    /* Also guards against a value written by another version of the extension. */
    if (VARSIZE(sums) < offsetof(KmeansSums, values) || sums->version != KMEANS_SUMS_VERSION || sums->k < 1 ||
        sums->d < 1 || VARSIZE(sums) != sums_size(sums->k, sums->d))
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("value of type kmeans_sums is damaged or of another version")));
    return sums;
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

/*
 * kmeans_sums_combine(a, b): a is changed in place inside an aggregate, copied elsewhere.
 *
 *   if a is NULL: return b            -- a worker or node that saw no rows
 *   if b is NULL: return a
 *   unless a and b are sums over the same centroids: ERROR 22023
 *   for each sum: a += b
 *   return a
 */
Datum pgkm_sums_combine(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(1)) {
        if (PG_ARGISNULL(0))
            PG_RETURN_NULL();
        PG_RETURN_DATUM(PG_GETARG_DATUM(0));
    }
    const bool in_place = AggCheckCallContext(fcinfo, NULL) != 0;

    /* The executor copies a result that is not its own state, so b may be handed back. */
    if (PG_ARGISNULL(0))
        PG_RETURN_POINTER(sums_argument(fcinfo, 1, false));

    KmeansSums       *a = sums_argument(fcinfo, 0, !in_place);
    const KmeansSums *b = sums_argument(fcinfo, 1, false);

    if (a->k != b->k || a->d != b->d)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("cannot merge kmeans_sums of %d x %d and of %d x %d centroids", a->k, a->d, b->k,
                               b->d)));
    if (a->fingerprint != b->fingerprint)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("cannot merge kmeans_sums of different centroids")));

    if (b->n > PGKM_MAX_ROWS - a->n)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows to sum")));

    const int64 count = sums_count(a->k, a->d);
    double     *low = a->values + count;

    for (int64 i = 0; i < count; ++i) {
        sums_add(&a->values[i], &low[i], b->values[i]);
        sums_add(&a->values[i], &low[i], b->values[count + i]);
        sums_check_range(a->values[i]);
    }
    a->n += b->n;
    PG_RETURN_POINTER(a);
}
