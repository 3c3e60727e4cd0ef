// draws.cuh (seed) - a draw by integer masses: the position whose running sum passes a target.
//
// Layout: positions make slices of seed_slice, slices make seed_parts parts; sums of both are in memory. A search
// shares the values out to the lanes of a warp, whose sums name the share that goes on: loads of a step wait for none
// of their own. Threads: a warp a draw; a block of seed_parts threads sums the parts.
#pragma once

#include "seed/sampler.cuh"

namespace pgkm::cuda {

__device__ inline UInt128 join_halves(unsigned long long high, unsigned long long low)
{
    return (UInt128{high} << 64) | low;
}

__device__ inline UInt128 shuffle_up(UInt128 value, int by)
{
    return join_halves(__shfl_up_sync(~0u, static_cast<unsigned long long>(value >> 64), by),
                       __shfl_up_sync(~0u, static_cast<unsigned long long>(value), by));
}

__device__ inline UInt128 shuffle(UInt128 value, int lane)
{
    return join_halves(__shfl_sync(~0u, static_cast<unsigned long long>(value >> 64), lane),
                       __shfl_sync(~0u, static_cast<unsigned long long>(value), lane));
}

__device__ inline UInt128 sum_in_warp(UInt128 value)
{
    for (int offset = 16; offset > 0; offset >>= 1)
        value += join_halves(__shfl_xor_sync(~0u, static_cast<unsigned long long>(value >> 64), offset),
                             __shfl_xor_sync(~0u, static_cast<unsigned long long>(value), offset));
    return value;
}

struct Found {
    std::int64_t index;
    UInt128 left; // what is left of the target at that index
};

// First index of value(0), value(1), ... whose running sum passes target, or the last one; one warp.
template <typename Value>
__device__ inline Found find_in_warp(std::int64_t count, UInt128 target, Value &&value)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    for (std::int64_t from = 0, end = count;;) {
        const std::int64_t share = (end - from + 31) / 32, first = from + lane * share;
        UInt128 own = 0;
#pragma unroll 8
        for (std::int64_t i = first; i < min(first + share, end); ++i)
            own += value(i);
        UInt128 running = own;
        for (int offset = 1; offset < 32; offset <<= 1) {
            const UInt128 lower = shuffle_up(running, offset);
            if (lane >= offset)
                running += lower;
        }
        const unsigned passed = __ballot_sync(~0u, running > target);
        if (passed == 0)
            return {end - 1, 0}; // all are 0
        const int winner = __ffs(static_cast<int>(passed)) - 1;
        target -= shuffle(running - own, winner);
        from += winner * share;
        end = min(from + share, end);
        if (share == 1)
            return {from, target};
    }
}

// Slices in each part.
__device__ inline std::int64_t slices_each(std::int64_t n_slices)
{
    return (n_slices + seed_parts - 1) / seed_parts;
}

// Sums of seed_parts equal shares of the slices, then their total; a block of seed_parts threads.
__device__ inline void sum_parts(const unsigned long long *slices, std::int64_t n_slices, UInt128 *parts)
{
    __shared__ UInt128 sums[seed_parts / 32];
    const std::int64_t share = slices_each(n_slices);
    UInt128 mine = 0;
#pragma unroll 8
    for (std::int64_t t = threadIdx.x * share; t < min((threadIdx.x + 1) * share, n_slices); ++t)
        mine += slices[t];
    parts[threadIdx.x] = mine;
    mine = sum_in_warp(mine);
    if ((threadIdx.x & 31) == 0)
        sums[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = sum_in_warp(sums[threadIdx.x]);
        if (threadIdx.x == 0)
            parts[seed_parts] = mine;
    }
    __syncthreads();
}

// The row of the first position whose running sum passes the target, by one warp; of the last one where all masses
// are 0.
template <typename T>
__device__ inline std::int64_t find_row(const SeedRows<T> &rows, const UInt128 *parts, const unsigned long long *slices,
                                        UInt128 target, bool first, double scale)
{
    const std::int64_t n_slices = (rows.n + seed_slice - 1) / seed_slice, share = slices_each(n_slices);
    const std::int64_t n_parts = (n_slices + share - 1) / share; // the others have none
    const Found part = find_in_warp(n_parts, target, [&](std::int64_t i) { return parts[i]; });
    const std::int64_t slice0 = part.index * share;
    const Found slice =
        find_in_warp(min(share, n_slices - slice0), part.left, [&](std::int64_t i) { return slices[slice0 + i]; });
    const std::int64_t place0 = (slice0 + slice.index) * seed_slice;
    const Found place = find_in_warp(min(std::int64_t{seed_slice}, rows.n - place0), slice.left, [&](std::int64_t i) {
        return seed_mass(rows, row_at(rows, place0 + i), first, scale);
    });
    return row_at(rows, place0 + place.index);
}

} // namespace pgkm::cuda
