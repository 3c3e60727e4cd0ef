// kernels.hpp (seed) - the steps of a seeding, each only enqueued; faults of a launch throw Error.
#pragma once

#include "seed/sampler.cuh"

namespace pgkm::cuda {

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
