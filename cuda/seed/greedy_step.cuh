// greedy_step.cuh (seed) - what ends the parts of a step of greedy.hpp, with peers and without.
#pragma once

#include "device/last_block.cuh"
#include "seed/draws.cuh"
#include "seed/greedy.hpp"

namespace pgkm::cuda {

// The mass of a row, and of those that it stands for, follows its v_i down. True when this no longer has the exponent
// of the largest.
template <typename T>
__device__ inline bool lower_mass(const GreedyRows<T> &rows, std::int64_t position, double before, double after,
                                  int exponent)
{
    const double scale = power_of_two(exponent);
    const std::int64_t loss =
        copies_of(rows.counts, position) * (quantise_mass(before, scale) - quantise_mass(after, scale));
    if (loss != 0)
        atomicAdd(rows.slices + position / seed_slice, static_cast<unsigned long long>(-loss));
    return is_top(before, exponent) && !is_top(after, exponent);
}

// `fallen` rows of each thread no longer have it; by all threads of a block.
template <int Threads>
__device__ inline void lower_tops(GreedyState *state, unsigned long long fallen)
{
    const unsigned long long sum = sum_in_block<Threads>(fallen);
    if (threadIdx.x == 0 && sum != 0)
        atomicAdd(&state->tops, static_cast<unsigned long long>(-static_cast<long long>(sum)));
}

// After all masses have followed: ends the lists, and asks for new masses where no row has that exponent any more.
__device__ inline void end_step(GreedyState *state)
{
    for (std::uint32_t &open : state->open)
        open = 0;
    if (*const_cast<volatile unsigned long long *>(&state->tops) == 0) {
        state->rescan = 1;
        state->seed.largest = 0;
    }
}

} // namespace pgkm::cuda
