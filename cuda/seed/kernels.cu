// kernels.cu (seed) - the steps of greedy k-means++ and k-means|| on the device, for any number of rows and features.
//
// One step of k-means++ is six launches without the host: weigh (masses of slices), pick (all trials), gather,
// potentials (all trials in one pass over the rows), choose, and the update of the distances to the nearest. Rows that
// the device has room for in fp16 take the steps of greedy.hpp, of which pick alone is here.
// A round of k-means|| is three: weigh, sum the slices up to parts, draw (a warp a draw).
// Data: rows as they lie in device memory, up to eight candidates a pass; slices are runs of positions in canonical
// order; masses are integers of 46 bits, of rows that stand for several 56; sums of a slice fit 64, of all rows 128.
// Threads: atomics add integers alone, so that the order does not matter.
// Reference: test/reference/seed.cpp, the same rows.
// Papers: Arthur, Vassilvitskii 2007 (k-means++); Bahmani and others 2012 (k-means||); O'Leary 2021 (seeding entirely
// on the GPU).
#include "seed/kernels.hpp"

#include "plan/stages.hpp"
#include "seed/draws.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

template <typename T>
__global__ void __launch_bounds__(threads)
    weigh_kernel(SeedRows<T> rows, SeedState *state, bool first, unsigned long long *slices)
{
    if (!first && (state->done != 0 || state->largest == 0))
        return;
    const double scale = first ? 0.0 : seed_scale(state);
    const std::int64_t start = std::int64_t{blockIdx.x} * seed_slice;
    static_assert(seed_slice * most_copies <= 1 << 18);
    unsigned long long mine = 0; // 46-bit masses of copies: a slice's sum fits 64 bits
    for (std::int64_t p = start + threadIdx.x; p < min(start + seed_slice, rows.n); p += threads)
        mine += seed_mass(rows, row_at(rows, p), first, scale);
    mine = sum_in_block<threads>(mine);
    if (threadIdx.x == 0)
        slices[blockIdx.x] = mine;
}

// One block; warp t makes draw t.
template <typename T>
__global__ void __launch_bounds__(seed_parts) pick_kernel(SeedRows<T> rows, SeedState *state, SeedKey key, bool first,
                                                          int trials, const unsigned long long *slices)
{
    __shared__ UInt128 parts[seed_parts + 1];
    if (!first && (state->done != 0 || state->largest == 0)) {
        if (threadIdx.x == 0)
            state->done = 1;
        return;
    }
    sum_parts(slices, (rows.n + seed_slice - 1) / seed_slice, parts);
    const int trial = static_cast<int>(threadIdx.x / 32);
    if (trial >= trials)
        return;
    const std::uint64_t index =
        first ? 0 : static_cast<std::uint64_t>(state->count) * 64 + static_cast<std::uint64_t>(trial);
    const std::uint64_t bits = draw(key.seed, key.restart, first ? key.first : key.trial, 0, index);
    const double scale = first ? 0.0 : seed_scale(state);
    const std::int64_t row = find_row(rows, parts, slices, scale_draw(bits, parts[seed_parts]), first, scale);
    if ((threadIdx.x & 31) == 0) {
        state->picks[trial] = row;
        state->potential[trial][0] = 0;
        state->potential[trial][1] = 0;
    }
}

template <typename T>
__global__ void gather_kernel(const T *values, int d, const SeedState *state, T *candidates)
{
    if (state->done != 0)
        return;
    for (int f = threadIdx.x; f < d; f += blockDim.x)
        candidates[std::int64_t{blockIdx.x} * d + f] = values[state->picks[blockIdx.x] * d + f];
}

// Exact distances of one row to up to eight candidates, the row read once.
template <typename T>
__device__ void distances_to(const T *row, const T *candidates, int count, int d, double *out)
{
    for (int c = 0; c < 8; ++c)
        out[c] = 0.0;
    for (int f = 0; f < d; ++f) {
        const double value = static_cast<double>(row[f]);
#pragma unroll
        for (int c = 0; c < 8; ++c)
            if (c < count)
                add_term(out[c], value, candidates[std::int64_t{c} * d + f]);
    }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    potential_kernel(SeedRows<T> rows, SeedState *state, const T *candidates, int first_trial, int trials)
{
    if (state->done != 0)
        return;
    const double scale = seed_scale(state);
    const std::int64_t share = (rows.n + gridDim.x - 1) / gridDim.x; // at most 2^18 copies: 64 bits hold their sum
    const std::int64_t start = blockIdx.x * share;
    unsigned long long mine[8] = {};
    for (std::int64_t i = start + threadIdx.x; i < min(start + share, rows.n); i += threads) {
        double distance[8];
        distances_to(rows.values + i * rows.d, candidates, trials, rows.d, distance);
        const double nearest = rows.nearest[i];
        const auto copies = static_cast<unsigned long long>(copies_of(rows.counts, i));
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const double least = fmin(nearest, weigh_distance(rows, i, distance[c]));
            mine[c] += copies * static_cast<unsigned long long>(quantise_mass(least, scale));
        }
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        const unsigned long long sum = sum_in_block<threads>(mine[c]);
        if (threadIdx.x == 0 && c < trials) {
            atomicAdd(&state->potential[first_trial + c][0], sum & 0xffffffffULL);
            atomicAdd(&state->potential[first_trial + c][1], sum >> 32);
        }
    }
}

__global__ void choose_kernel(SeedState *state, int trials, std::int64_t *chosen)
{
    if (state->done != 0)
        return;
    choose(*state, trials, chosen, [&](int t) { return ~potential_of(*state, t); });
    state->largest = 0; // found anew by nearest_kernel
}

// v_i = min(v_i, w_i D to the candidates): the chosen trial's, or `count` of them (k-means||).
template <typename T>
__global__ void __launch_bounds__(threads)
    nearest_kernel(SeedRows<T> rows, SeedState *state, const T *candidates, int count, bool chosen_trial, bool fresh)
{
    if (state->done != 0)
        return;
    const T *from = chosen_trial ? candidates + std::int64_t{state->best} * rows.d : candidates;
    double largest = 0.0;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < rows.n; i += stride) {
        double least = fresh ? INFINITY : rows.nearest[i];
        for (int c = 0; c < count; c += 8) {
            double distance[8];
            const int some = min(8, count - c);
            distances_to(rows.values + i * rows.d, from + std::int64_t{c} * rows.d, some, rows.d, distance);
#pragma unroll
            for (int j = 0; j < 8; ++j)
                if (j < some)
                    least = fmin(least, weigh_distance(rows, i, distance[j]));
        }
        rows.nearest[i] = least;
        largest = fmax(largest, least);
    }
    raise_largest(&state->largest, largest);
}

__global__ void __launch_bounds__(seed_parts)
    parts_kernel(const SeedState *state, const unsigned long long *slices, std::int64_t n_slices, UInt128 *parts)
{
    __shared__ UInt128 own[seed_parts + 1];
    if (state->largest == 0)
        return;
    sum_parts(slices, n_slices, own);
    parts[threadIdx.x] = own[threadIdx.x];
    if (threadIdx.x == 0)
        parts[seed_parts] = own[seed_parts];
}

// A round of k-means||: a warp a draw, all by the masses at the round's beginning.
template <typename T>
__global__ void __launch_bounds__(threads)
    draw_kernel(SeedRows<T> rows, const SeedState *state, SeedKey key, std::uint32_t round, std::int64_t draws,
                const UInt128 *parts, const unsigned long long *slices, std::int64_t *drawn)
{
    const std::int64_t index = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
    if (state->largest == 0 || index >= draws)
        return;
    const std::uint64_t bits =
        draw(key.seed, key.restart, Stream::oversample, round, static_cast<std::uint64_t>(index));
    const std::int64_t row =
        find_row(rows, parts, slices, scale_draw(bits, parts[seed_parts]), false, seed_scale(state));
    if ((threadIdx.x & 31) == 0)
        drawn[index] = row;
}

} // namespace

template <typename T>
void SeedKernels<T>::weigh(const SeedRows<T> &rows, bool first) const
{
    const std::int64_t n_slices = (rows.n + seed_slice - 1) / seed_slice;
    enqueue(weigh_kernel<T>, n_slices, threads, 0, stream, rows, state, first, slices);
}

template <typename T>
void SeedKernels<T>::pick(const SeedRows<T> &rows, bool first, int trials) const
{
    enqueue(pick_kernel<T>, 1, seed_parts, 0, stream, rows, state, key, first, trials, slices);
}

template <typename T>
void SeedKernels<T>::gather(const SeedRows<T> &rows, int trials, T *candidates) const
{
    enqueue(gather_kernel<T>, trials, 128, 0, stream, rows.values, rows.d, state, candidates);
}

template <typename T>
void SeedKernels<T>::potentials(const SeedRows<T> &rows, const T *candidates, int trials) const
{
    const std::int64_t least = rows.n / ((1 << 18) / (rows.counts == nullptr ? 2 : most_copies)) + 1;
    const int blocks =
        static_cast<int>(std::max<std::int64_t>(least, blocks_for(rows.n, threads, multiprocessors * 8)));
    for (int first = 0; first < trials; first += 8) {
        enqueue(potential_kernel<T>, blocks, threads, 0, stream, rows, state, candidates + std::int64_t{first} * rows.d,
                first, std::min(8, trials - first));
    }
}

template <typename T>
void SeedKernels<T>::choose(int trials, std::int64_t *chosen) const
{
    enqueue(choose_kernel, 1, 1, 0, stream, state, trials, chosen);
}

template <typename T>
void SeedKernels<T>::update_nearest(const SeedRows<T> &rows, const T *candidates, int count, bool chosen_trial,
                                    bool fresh) const
{
    const int blocks = blocks_for(rows.n, threads, multiprocessors * 8);
    enqueue(nearest_kernel<T>, blocks, threads, 0, stream, rows, state, candidates, count, chosen_trial, fresh);
}

template <typename T>
void SeedKernels<T>::draw_round(const SeedRows<T> &rows, std::uint32_t round, std::int64_t draws, UInt128 *parts,
                                std::int64_t *drawn) const
{
    weigh(rows, false);
    enqueue(parts_kernel, 1, seed_parts, 0, stream, state, slices, (rows.n + seed_slice - 1) / seed_slice, parts);
    constexpr std::int64_t draws_each = threads / 32;
    enqueue(draw_kernel<T>, (draws + draws_each - 1) / draws_each, threads, 0, stream, rows, state, key, round, draws,
            parts, slices, drawn);
}

template struct SeedKernels<float>;
template struct SeedKernels<double>;

} // namespace pgkm::cuda
