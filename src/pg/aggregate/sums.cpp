/*
 * sums.cpp - sums of kmeans_step made, merged, returned as kmeans_sums and read back.
 */
#include "pg/aggregate/sums.h"

#include <algorithm>
#include <cmath>

#include "engine/api.h"
#include "pg/values/composite_read.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/float.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(pgkm_step_combine);
PG_FUNCTION_INFO_V1(pgkm_merge_accum);
PG_FUNCTION_INFO_V1(pgkm_step_final);
PG_FUNCTION_INFO_V1(pgkm_step_centroids);
}

/* What the heads of a kmeans_sums and of its arrays take at most. */
#define HEAD_BYTES 1024

static const PgkmField fields[] = {{"k", INT4OID},
                                   {"d", INT4OID},
                                   {"n", INT8OID},
                                   {"inertia", FLOAT8OID},
                                   {"masses", FLOAT8ARRAYOID},
                                   {"features", FLOAT8ARRAYOID},
                                   {"low", FLOAT8ARRAYOID},
                                   {"fingerprint", INT8OID}};
static const PgkmCompositeType sums_type = {"kmeans_sums", fields, lengthof(fields)};

static Size sums_size(int32 k, int32 d)
{
    return offsetof(KmeansSums, values) + 2 * sizeof(double) * (Size)KmeansSums::count(k, d);
}

KmeansSums *sums_create(MemoryContext context, int32 k, int32 d, uint64 fingerprint)
{
    /* k and d each fit an int32, so the count cannot overflow; the product with 16 can. */
    if (KmeansSums::count(k, d) > (int64)(MaxAllocSize - HEAD_BYTES) / (int64)(2 * sizeof(double)))
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("kmeans_sums of %s of %s would exceed the maximum size of a value",
                               pgkm_counted(k, "cluster"), pgkm_counted(d, "feature"))));

    KmeansSums *const sums = pgkm_flat_create<KmeansSums>(context, sums_size(k, d));

    sums->k = k;
    sums->d = d;
    sums->fingerprint = fingerprint;
    return sums;
}

bool KmeansSums::is_whole() const
{
    return k >= 1 && d >= 1 && n >= 0 && n <= PGKM_MAX_ROWS && VARSIZE(this) == sums_size(k, d);
}

void KmeansSums::check_range(double value)
{
    if (!std::isfinite(value))
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

    const int64 count = KmeansSums::count(a->k, a->d);
    double *const low = a->low();

    for (int64 i = 0; i < count; ++i) {
        a->add(low, i, b->values[i]);
        a->add(low, i, b->values[count + i]);
    }
    a->n += b->n;
}

/* pgkm_step_combine(a bytea, b bytea) -> bytea */
Datum pgkm_step_combine(PG_FUNCTION_ARGS)
{
    return pgkm_flat_combine<KmeansSums>(fcinfo, merge);
}

/* A kmeans_sums as a state; users can make one by hand. */
static KmeansSums *read_sums(Datum composite, MemoryContext context)
{
    static const char no_n[] = "be from 1 to 2^53";
    PgkmModelFields from;
    int32 k;
    int32 d;

    pgkm_model_open(composite, &sums_type, CurrentMemoryContext, &from);
    pgkm_model_extents(&from, &k, &d);

    const NullableDatum *const n = pgkm_model_field(&from, "n");
    const NullableDatum *const inertia = pgkm_model_field(&from, "inertia");
    const NullableDatum *const low = pgkm_model_field(&from, "low");
    const NullableDatum *const fingerprint = pgkm_model_field(&from, "fingerprint");
    const double *const masses = pgkm_model_numbers(&from, "masses", "hold k finite values of at least 0", {k});
    const double *const features = pgkm_model_numbers(&from, "features", "hold k x d finite values", {k, d});
    const int64 count = KmeansSums::count(k, d);

    if (n->isnull || DatumGetInt64(n->value) < 1 || DatumGetInt64(n->value) > PGKM_MAX_ROWS)
        pgkm_raise_field(&from, "n", no_n);
    if (inertia->isnull || !(DatumGetFloat8(inertia->value) >= 0) || std::isinf(DatumGetFloat8(inertia->value)))
        pgkm_raise_field(&from, "inertia", "be a finite number of at least 0");
    if (std::any_of(masses, masses + k, [](double mass) { return mass < 0; }))
        pgkm_raise_field(&from, "masses", "hold k finite values of at least 0");
    if (fingerprint->isnull)
        pgkm_raise_field(&from, "fingerprint", "tell the centroids");

    KmeansSums *const sums = sums_create(context, k, d, (uint64)DatumGetInt64(fingerprint->value));

    sums->n = DatumGetInt64(n->value);
    sums->values[0] = DatumGetFloat8(inertia->value);
    std::copy_n(masses, k, sums->masses());
    std::copy_n(features, (int64)k * d, sums->features());
    if (!low->isnull && ARR_NDIM(DatumGetArrayTypeP(low->value)) > 0)
        std::copy_n(pgkm_model_numbers(&from, "low", "hold a finite value for each sum, or be empty", {(int32)count}),
                    count, sums->low());
    return sums;
}

/* pgkm_merge_accum(state bytea, sums kmeans_sums) -> bytea: the state with those sums; NULL adds nothing. */
Datum pgkm_merge_accum(PG_FUNCTION_ARGS)
{
    const auto read = [fcinfo](MemoryContext context) { return read_sums(PG_GETARG_DATUM(1), context); };

    return pgkm_flat_merge<KmeansSums>(fcinfo, read, merge);
}

/* pgkm_step_final(state bytea) -> kmeans_sums: NULL without rows. */
Datum pgkm_step_final(PG_FUNCTION_ARGS)
{
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();

    const TupleDesc tupdesc = pgkm_result_tupdesc(fcinfo, &sums_type);
    KmeansSums *const sums = pgkm_flat_argument<KmeansSums>(fcinfo, 0);
    const int32 k = sums->k;
    const int32 d = sums->d;
    const int64 count = KmeansSums::count(k, d);
    const double *const low = sums->low();
    const bool any_low = std::any_of(low, low + count, [](double value) { return value != 0; });

    PG_RETURN_DATUM(pgkm_composite_make(
        tupdesc, {k, d, sums->n, sums->values[0], pgkm_array(sums->masses(), {k}), pgkm_array(sums->features(), {k, d}),
                  pgkm_array_or_empty(any_low ? low : NULL, (int32)count), (int64)sums->fingerprint}));
}

/* 22003 where it is beyond the range of double precision: a mass may be next to nothing. */
static double mean_of(double sum, double mass)
{
    const double mean = sum / mass;

    KmeansSums::check_range(mean);
    return mean;
}

/* kmeans_sums_centroids(sums kmeans_sums): the k x d means; a cluster without mass has no mean, its row is NULLs. */
Datum pgkm_step_centroids(PG_FUNCTION_ARGS)
{
    KmeansSums *const sums = read_sums(PG_GETARG_DATUM(0), CurrentMemoryContext);
    const Size count = (Size)sums->k * sums->d;
    Datum *const values = (Datum *)palloc_extended(count * sizeof(Datum), MCXT_ALLOC_HUGE);
    bool *const nulls = (bool *)palloc(count * sizeof(bool));
    int extents[2] = {sums->k, sums->d};
    int lower[2] = {1, 1};

    for (Size at = 0; at < count; ++at) {
        const double mass = sums->masses()[at / sums->d];
        const double sum = sums->features()[at];

        nulls[at] = mass == 0;
        values[at] = Float8GetDatum(nulls[at] ? 0 : mean_of(sum, mass));
    }
    PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, 2, extents, lower, FLOAT8OID, sizeof(float8),
                                             FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
