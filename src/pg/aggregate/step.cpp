/*
 * step.cpp - the transition function of the aggregate kmeans_step: assigns each row to the
 * nearest of the given centroids and adds it to the sums of its cluster.
 *
 * One C function serves every array type and the weighted form, and it keeps nothing
 * between calls but the state: a distributed planner calls it with a fresh FmgrInfo for
 * each row, and ships the state as text or in binary form.
 */
#include "pg/aggregate/sums.h"

#include <bit>
#include <cmath>

#include "engine/api.h"
#include "pg/values/datum.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(pgkm_step_accum);
}

enum StepArgument { ARGUMENT_STATE, ARGUMENT_FEATURES, ARGUMENT_CENTROIDS, ARGUMENT_WEIGHT };

struct Centroids {
    const double *values; /* k x d */
    int32 k;
    int32 d;
};

static void open_centroids(FunctionCallInfo fcinfo, int number, Centroids *centroids)
{
    ArrayType *array = DatumGetArrayTypeP(pgkm_required(&fcinfo->args[number], "centroids"));

    if (ARR_NDIM(array) != 2 || ARR_ELEMTYPE(array) != FLOAT8OID)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("centroids must be a two-dimensional array (clusters x features)")));
    if (array_contains_nulls(array))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("centroids must not contain nulls")));
    centroids->values = (const double *)ARR_DATA_PTR(array);
    centroids->k = ARR_DIMS(array)[0];
    centroids->d = ARR_DIMS(array)[1];
}

/* Four independent chains of multiply and rotate, so that a row pays about a cycle an element. */
static uint64 fingerprint(const Centroids *centroids)
{
    const int64 count = (int64)centroids->k * centroids->d;
    uint64 lanes[4] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};
    uint64 mixed = (uint64)count;

    for (int64 i = 0; i < count; ++i) {
        /* + 0.0: both zeros are the same centroid. */
        const uint64 bits = std::bit_cast<uint64>(centroids->values[i] + 0.0);

        lanes[i & 3] = std::rotl(lanes[i & 3] ^ bits, 29) * 0x9fb21c651e98df25;
    }
    for (int i = 0; i < 4; ++i)
        mixed = (mixed ^ (lanes[i] ^ lanes[i] >> 32)) * 0xff51afd7ed558ccd;
    return mixed ^ mixed >> 33;
}

/* The first row's work: checks the centroids, whose later copies are only compared. */
static KmeansSums *begin_sums(FunctionCallInfo fcinfo, const Centroids *centroids, uint64 print)
{
    const int64 count = (int64)centroids->k * centroids->d;

    for (int64 i = 0; i < count; ++i)
        if (!(std::fabs(centroids->values[i]) <= PGKM_MAX_MAGNITUDE))
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                     errmsg("element [%d][%d] of the centroids is not a finite number of magnitude at most 2^500",
                            (int)(i / centroids->d) + 1, (int)(i % centroids->d) + 1)));
    return sums_create(pgkm_flat_context(fcinfo), centroids->k, centroids->d, print);
}

static void check_same_centroids(const KmeansSums *sums, const Centroids *centroids, uint64 print)
{
    if (sums->k != centroids->k || sums->d != centroids->d)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("centroids changed from %d x %d to %d x %d inside a group", sums->k, sums->d,
                               centroids->k, centroids->d)));
    if (sums->fingerprint != print)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("centroids changed inside a group")));
}

static void add_row(KmeansSums *sums, const Centroids *centroids, const double *row, double weight)
{
    double *const low = sums->low();
    int32 label;
    double distance;

    pgkm_nearest(row, centroids->values, sums->k, sums->d, &label, &distance);
    sums->add(low, 0, weight * distance);
    sums->add(low, 1 + label, weight);
    for (int64 i = 0, at = 1 + sums->k + (int64)label * sums->d; i < sums->d; ++i, ++at)
        sums->add(low, at, weight * row[i]);
    ++sums->n;
}

/* Adds the row to the sums, which the first one makes. */
static KmeansSums *accumulate(FunctionCallInfo fcinfo, KmeansSums *sums)
{
    PgkmVector vector;
    PgkmRowFault fault;
    Centroids centroids;
    double weight;

    if (!pgkm_row_arguments(fcinfo, ARGUMENT_FEATURES, ARGUMENT_WEIGHT, &vector, &weight))
        return sums;
    open_centroids(fcinfo, ARGUMENT_CENTROIDS, &centroids);

    const uint64 print = fingerprint(&centroids);

    if (sums == NULL)
        sums = begin_sums(fcinfo, &centroids, print);
    else
        check_same_centroids(sums, &centroids, print);

    double *const row = (double *)palloc(centroids.d * sizeof(double));

    if (!pgkm_copy_row(&vector, PGKM_FLOAT64, centroids.d, row, &fault))
        pgkm_raise_row_fault(&fault, NULL);
    add_row(sums, &centroids, row, weight);
    pfree(row);
    return sums;
}

/*
 * pgkm_step_accum(state bytea, features anyarray, centroids float8[][] [, weight float8])
 *
 *   if features is NULL or all NULLs, or weight is NULL or 0: return state
 *   if state is NULL: state := zero sums for the k x d centroids
 *   unless centroids are those of the state: ERROR 22023
 *   j := the lowest index that minimises D(features, centroids[j])
 *   state.inertia += weight * D;  state.mass[j] += weight;  state.sum[j] += weight * features
 *   return state
 *
 * Inside an aggregate the state is changed in place: its size never changes.
 */
Datum pgkm_step_accum(PG_FUNCTION_ARGS)
{
    return pgkm_flat_accumulate<KmeansSums>(fcinfo, accumulate);
}
