// kernels.hpp (seed) - the steps of a seeding, each only enqueued; faults of a launch throw Error.
#pragma once

#include <algorithm>

#include "plugin/context.hpp"
#include "seed/sampler.cuh"

namespace pgkm::cuda {

// Terms of exact distances that take some 10 ms: a cancel is seen between such parts of the work.
inline constexpr double terms_per_wait = 3e10;

// Calls body(first, count) for parts of n rows, each with `terms` as long as one of a distance; waits between them.
// Parts are whole warps' rows.
template <typename Body>
void in_parts(Context &context, std::int64_t n, double terms, Body &&body)
{
    const auto most = static_cast<std::int64_t>(std::clamp(terms_per_wait / terms, 1024.0, 1e18)) / 32 * 32;
    for (std::int64_t first = 0; first < n; first += most) {
        if (first != 0)
            context.wait(context.compute.get());
        body(first, std::min(most, n - first));
    }
}

template <typename T>
struct SeedKernels {
    SeedState *state;
    unsigned long long *slices; // one per seed_slice positions
    SeedKey key;
    int multiprocessors;
    cudaStream_t stream;

    // Masses of all slices, for the first draw by weight.
    void weigh(const SeedRows<T> &rows, bool first) const;
    // Draws `trials` rows by these masses into state->picks; sets state->done when no row lies apart.
    void pick(const SeedRows<T> &rows, bool first, int trials) const;
    // candidates[t] = the row picked by trial t.
    void gather(const SeedRows<T> &rows, int trials, T *candidates) const;
    void potentials(const SeedRows<T> &rows, const T *candidates, int trials) const;
    // The trial that leaves the least potential joins the chosen ones.
    void choose(int trials, std::int64_t *chosen) const;
    void update_nearest(const SeedRows<T> &rows, const T *candidates, int count, bool chosen_trial, bool fresh) const;
    // drawn[i] = the row of draw i of a round of k-means||; parts: seed_parts + 1 sums for its use. Leaves `drawn` as
    // it is when no row lies apart.
    void draw_round(const SeedRows<T> &rows, std::uint32_t round, std::int64_t draws, UInt128 *parts,
                    std::int64_t *drawn) const;
};

} // namespace pgkm::cuda
