// seed_kernels.hpp - what seeding does to one block of rows, for every instruction set.
//
// All distances are exact_distance() of the contract, computed for several rows and
// candidates at once: each lane adds its features in order, one fma each.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Rows of a block at most: what is known of them stays in cache, and their 46-bit integers
// fit a 64-bit sum.
inline constexpr std::int64_t max_seed_block = 1 << 12;

// A block of rows with what the sampler knows of each.
template <typename T>
struct SeedBlock {
    const T *values;       // n x d
    const double *weights; // n, or NULL: every row weighs 1
    std::int64_t n;
    std::int32_t d;
    double *nearest;      // n: squared distance to the nearest chosen row
    std::int32_t *labels; // n: which of the chosen rows that is; or NULL: nobody asks
    // Per chosen row: no candidate can win a row that is no farther from it than this. NULL:
    // nothing is known.
    const double *safe;
};

// Candidate rows in float64, count x d.
struct SeedCandidates {
    const double *values;
    std::int32_t count;       // at most max_seed_candidates
    std::int32_t first_index; // label of the first of them
};
inline constexpr std::int32_t max_seed_candidates = 32;

struct SeedKernels {
    // Lowers `nearest` to the distance of the nearest candidate, labels following (the earlier
    // candidate keeps a tie). Returns the largest weight * nearest of the block.
    template <typename T>
    using Lower = double(const SeedBlock<T> &block, const SeedCandidates &candidates);
    ForElements<Lower> lower;
    // Sum of the sampling integers of the block, floor(weight * nearest * scale).
    template <typename T>
    using Sum = std::uint64_t(const SeedBlock<T> &block, double scale);
    ForElements<Sum> sum;
    // The same sum for each candidate as if it were chosen; `now` is sum()'s result.
    template <typename T>
    using TryEach = void(const SeedBlock<T> &block, const SeedCandidates &candidates, double scale, std::uint64_t now,
                         std::uint64_t *sums);
    ForElements<TryEach> try_each;
};

const SeedKernels &seed_kernels(InstructionSet set);

} // namespace pgkm::cpu
