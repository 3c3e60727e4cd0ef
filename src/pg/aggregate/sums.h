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
    double values[FLEXIBLE_ARRAY_MEMBER]; /* inertia, k masses and k x d feature sums: highs, then as many lows */

    static constexpr char aggregate[] = "kmeans_step";
    static constexpr uint16 current_version = 1;

    bool is_whole() const;
    int64 rows() const { return n; }

    /* Number of sums. */
    static int64 count(int32 k, int32 d) { return 1 + (int64)k * (1 + (int64)d); }

    double *masses() { return values + 1; }
    double *features() { return masses() + k; }
    double *low() { return values + count(k, d); }

    /* Adds x to the pair values[at] + low[at]; exact but for the last rounding of low. 22003 beyond the range. */
    void add(double *low, int64 at, double x)
    {
        const double high = values[at];
        const double sum = high + x;
        const double part = sum - high;
        const double lost = (high - (sum - part)) + (x - part) + low[at];

        values[at] = sum + lost;
        low[at] = lost - (values[at] - sum);
        check_range(values[at]);
    }

    static void check_range(double value);
};

/* An empty state; 54000 when it or its kmeans_sums would pass 1 GB. */
KmeansSums *sums_create(MemoryContext context, int32 k, int32 d, uint64 fingerprint);

#endif
