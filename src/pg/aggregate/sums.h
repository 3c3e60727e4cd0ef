/*
 * sums.h - the sums of the aggregate kmeans_step: its state, and kmeans_sums, the composite type that it returns.
 *
 * The state's size depends on k and d alone, so a transition function can update it in place.
 *
 * Every sum is kept as an unevaluated pair high + low (Dekker 1971): high is the sum
 * rounded to float64, low what the rounding lost. A plain float64 sum drifts by 1e-10
 * over some 10^7 equal values; with the pair, the rows may come in any order and in any
 * number of parts and the results still agree to a rounding.
 */
#ifndef PGKM_PG_AGGREGATE_SUMS_H
#define PGKM_PG_AGGREGATE_SUMS_H

#include "pg/aggregate/flat_state.h"

struct KmeansSums {
    int32 vl_len_; /* varlena header, never touched directly */
    uint16 version;
    uint16 reserved; /* 0 */
    int32 k;
    int32 d;
    int64 n;                              /* rows in the sums, each counted once whatever its weight */
    uint64 fingerprint;                   /* of the centroids: sums of different centroids must not be merged */
    double values[FLEXIBLE_ARRAY_MEMBER]; /* sums_count() highs, then as many lows */

    static constexpr char aggregate[] = "kmeans_step";
    static constexpr uint16 current_version = 1;

    bool is_whole() const;
    int64 rows() const { return n; }
};

/* Number of sums: the inertia, k masses, k x d feature sums; in this order. */
static inline int64 sums_count(int32 k, int32 d)
{
    return 1 + (int64)k * (1 + (int64)d);
}

static inline Size sums_size(int32 k, int32 d)
{
    return offsetof(KmeansSums, values) + 2 * sizeof(double) * (Size)sums_count(k, d);
}

#define SUMS_INERTIA_INDEX 0
#define SUMS_MASS_INDEX(j) (1 + (int64)(j))
#define SUMS_FEATURE_INDEX(k, d, j) (1 + (int64)(k) + (int64)(j) * (d))

/* Adds x to the pair high + low; exact but for the last rounding of low. */
static inline void sums_add(double *high, double *low, double x)
{
    const double sum = *high + x;
    const double part = sum - *high;
    const double lost = (*high - (sum - part)) + (x - part) + *low;

    *high = sum + lost;
    *low = lost - (*high - sum);
}

/* An empty state; 54000 when it or its kmeans_sums would pass 1 GB. */
KmeansSums *sums_create(MemoryContext context, int32 k, int32 d, uint64 fingerprint);

/* Raises 22003 unless the number, or the pair's sum, is finite. */
void sums_check_range(double high);

#endif
