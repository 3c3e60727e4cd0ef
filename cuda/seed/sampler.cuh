// sampler.cuh (seed) - D^2 sampling on the device: the state of a seeding, the rows it is over, and the choice of a
// trial.
#pragma once

#include <cstdint>

#include "device/exact.cuh"
#include "device/view.cuh"
#include "plugin/memory.hpp"
#include "numeric/philox.hpp"

namespace pgkm::cuda {

inline constexpr int seed_slice = 256;  // rows whose integer masses are summed together
inline constexpr int most_trials = 24;  // greedy_trials(2^31) is 23
inline constexpr int seed_parts = 1024; // sums of slices' masses that a draw looks at first

// What the kernels of a seeding hand to each other; no step goes through the host.
struct SeedState {
    unsigned long long largest; // bits of the largest v_i = w_i * m_i
    std::int32_t done;          // every v_i is 0
    std::int32_t count;         // chosen so far
    std::int32_t best;          // trial that was chosen
    std::int64_t picks[most_trials];
    unsigned long long potential[most_trials][2]; // low and high 32 bits of block sums, apart
};

// Rows to choose from: those of a problem, or candidates with weights of their own. Draws walk positions: those of the
// canonical order, or the candidates' own.
template <typename T>
struct SeedRows {
    const T *values;            // n x d
    const double *weights;      // or nullptr
    const std::int64_t *masses; // integers for the first draw, or nullptr: from the weights, or 1
    std::int64_t n;
    std::int32_t d;
    std::int32_t weight_exponent;
    double *nearest;                       // n: v_i = w_i * m_i; rounding is monotonic, so that the least of
                                           // the products is the product of the least
    const std::uint32_t *order = nullptr;  // the row at each position; nullptr: rows are their own positions
    const std::uint16_t *counts = nullptr; // how many equal rows each stands for, or nullptr: 1
};

template <typename T>
__device__ inline std::int64_t row_at(const SeedRows<T> &rows, std::int64_t position)
{
    return rows.order == nullptr ? position : rows.order[position];
}

// The squared distance of row i as it enters v_i.
template <typename T>
__device__ inline double weigh_distance(const SeedRows<T> &rows, std::int64_t i, double distance)
{
    return rows.weights == nullptr ? distance : rows.weights[i] * distance;
}

__device__ inline double seed_scale(const SeedState *state)
{
    return power_of_two(square_exponent(__longlong_as_double(static_cast<long long>(state->largest))));
}

// Whether v_i has the exponent of the largest, which masses are scaled by.
__device__ inline bool is_top(double nearest, int exponent)
{
    return nearest > 0.0 && square_exponent(nearest) == exponent;
}

// Raises the largest v_i by what each lane of a warp found; by all lanes.
__device__ inline void raise_largest(unsigned long long *bits, double largest)
{
    largest = max_lanes(largest);
    if ((threadIdx.x & 31) == 0 && largest > 0.0)
        atomicMax(bits, static_cast<unsigned long long>(__double_as_longlong(largest)));
}

// The integer mass of a row and those that it stands for: for the first draw by weight, later by D^2.
template <typename T>
__device__ inline unsigned long long seed_mass(const SeedRows<T> &rows, std::int64_t i, bool first, double scale)
{
    const auto copies = static_cast<unsigned long long>(copies_of(rows.counts, i));
    if (!first)
        return copies * static_cast<unsigned long long>(quantise_mass(rows.nearest[i], scale));
    if (rows.masses != nullptr)
        return static_cast<unsigned long long>(rows.masses[i]);
    return rows.weights == nullptr
               ? copies
               : copies *
                     static_cast<unsigned long long>(quantise(rows.weights[i], power_of_two(rows.weight_exponent)));
}

// How draws of one seeding are keyed.
struct SeedKey {
    std::uint64_t seed;
    std::uint32_t restart;
    Stream first;
    Stream trial;
};

// What has been summed up over rows for a trial; past the caches, since it may be another device's.
__device__ inline UInt128 potential_of(const SeedState &state, int trial)
{
    const volatile unsigned long long *parts = state.potential[trial];
    return (UInt128{parts[1]} << 32) + parts[0];
}

// The trial of the largest gain(t), the first of them. A potential's gain is its complement.
template <typename Gain>
__device__ int best_trial(int trials, Gain &&gain)
{
    decltype(gain(0)) most = 0;
    int best = 0;
    for (int t = 0; t < trials; ++t)
        if (const auto own = gain(t); own > most) {
            most = own;
            best = t;
        }
    return best;
}

// Takes it.
template <typename Gain>
__device__ void choose(SeedState &state, int trials, std::int64_t *chosen, Gain &&gain)
{
    state.best = best_trial(trials, gain);
    chosen[state.count] = state.picks[state.best];
    state.count += 1;
}

} // namespace pgkm::cuda
