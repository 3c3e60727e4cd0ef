// held_rows.cu (seed) - greedy k-means++ in one launch, with the rows in shared memory.
//
// Where rows are few, the launches of a step (greedy.hpp) take longer than its arithmetic. Here each multiprocessor
// holds a run of positions from the first step to the last: values, v_i and distances to the trials. A step meets the
// other blocks three times: with the masses of all blocks each block finds which rows are drawn, and the block that has
// them says so; with these rows come all distances, and what each trial gains; with the gains each block knows the
// trial that is chosen. Masses keep their scale while some v_i has the exponent of the largest. Where none has, two
// more meetings find the largest anew.
//
// Layout: values by feature, so that neighbours in a warp read neighbours; trials in groups of four, in float64.
// Threads: a row and four trials a thread; a warp a draw, and the gain of a trial; atomics add integers.
// Reference: test/reference/seed.cpp, the same rows.
#include "seed/held_rows.hpp"

#include <algorithm>

#include <cooperative_groups.h>

#include "device/carver.cuh"
#include "plan/stages.hpp"
#include "seed/canonical.hpp"
#include "seed/draws.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 512, warps = threads / 32;
constexpr int group = 4;                      // trials that a thread measures together
constexpr std::int32_t steps_of_launch = 256; // some 5 ms: a cancel is seen between two

// What blocks hand to each other. Of two slots a step has one; the next step's is cleared meanwhile.
struct HeldState {
    unsigned long long largest[2]; // bits of the largest v_i
    unsigned long long gains[2][most_trials][2];
    std::int32_t tops[2]; // whether a row has the exponent of the largest v_i
    std::int64_t picks[most_trials];
    std::int32_t count, done;
};

template <typename T>
struct HeldRows {
    SeedRows<T> rows; // nearest: by position, between launches
    SeedKey key;
    std::int32_t trials;
    std::int32_t each; // rows of a block
    HeldState *state;
    unsigned long long *parts; // mass of each block's rows
    std::int64_t *chosen;      // positions
};

__host__ __device__ constexpr int groups_of(int trials)
{
    return (trials + group - 1) / group;
}

// A block's shared memory.
template <typename T>
struct HeldBlock {
    double *trials;            // groups x d x group: values
    double *nearest;           // each
    double *distances;         // trials x each
    unsigned long long *parts; // of all blocks
    T *values;                 // d x each
    std::size_t bytes;

    __host__ __device__ HeldBlock(double *memory, std::int64_t each, std::int64_t d, int n_trials, std::int64_t blocks)
    {
        Carver carver(memory, sizeof *memory);
        trials = carver.take<double>(groups_of(n_trials) * group * d);
        nearest = carver.take<double>(each);
        distances = carver.take<double>(n_trials * each);
        parts = carver.take<unsigned long long>(blocks);
        values = carver.take<T>(d * each);
        bytes = carver.used();
    }
};

// The rows of one block, and its part of a step. All functions are called by all threads.
template <typename T>
class Holder {
  public:
    __device__ Holder(double *memory, const HeldRows<T> &a)
        : a_(a), block_(memory, a.each, a.rows.d, a.trials, gridDim.x), first_(std::int64_t{blockIdx.x} * a.each),
          own_(static_cast<int>(min(std::int64_t{a.each}, a.rows.n - first_))),
          lane_(static_cast<int>(threadIdx.x & 31)), warp_(static_cast<int>(threadIdx.x / 32))
    {
    }

    __device__ void load(bool with_nearest) const
    {
        const int d = a_.rows.d;
        for (int i = static_cast<int>(threadIdx.x); i < own_ * d; i += threads)
            block_.values[i % d * a_.each + i / d] = a_.rows.values[row(i / d) * d + i % d];
        for (int i = static_cast<int>(threadIdx.x); with_nearest && i < own_; i += threads)
            block_.nearest[i] = a_.rows.nearest[first_ + i];
        __syncthreads();
    }
    __device__ void store() const
    {
        for (int i = static_cast<int>(threadIdx.x); i < own_; i += threads)
            a_.rows.nearest[first_ + i] = block_.nearest[i];
    }

    __device__ void raise_largest_of_all(unsigned long long *largest) const
    {
        double mine = 0.0;
        for (int i = static_cast<int>(threadIdx.x); i < own_; i += threads)
            mine = fmax(mine, block_.nearest[i]);
        raise_largest(largest, mine);
    }
    // For the first draw by weight, later by D^2.
    __device__ unsigned long long mass(int i, bool first, double scale) const
    {
        return first ? seed_mass(a_.rows, row(i), true, scale) : drawn_mass(i, block_.nearest[i], scale);
    }
    __device__ void tell_mass(bool first, double scale) const
    {
        unsigned long long mine = 0;
        for (int i = static_cast<int>(threadIdx.x); i < own_; i += threads)
            mine += mass(i, first, scale);
        mine = sum_in_block<threads>(mine);
        if (threadIdx.x == 0)
            a_.parts[blockIdx.x] = mine;
    }

    // Draws of rows that this block has become picks.
    __device__ void pick(std::int32_t step, double scale) const
    {
        for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(gridDim.x); i += threads)
            block_.parts[i] = __ldcg(a_.parts + i);
        __syncthreads();
        UInt128 total = 0;
        for (int i = lane_; i < static_cast<int>(gridDim.x); i += 32)
            total += block_.parts[i];
        total = sum_in_warp(total);
        for (int trial = warp_; trial < trials_of(step); trial += warps) {
            const std::uint64_t index = static_cast<std::uint64_t>(step) * 64 + static_cast<std::uint64_t>(trial);
            const std::uint64_t bits =
                draw(a_.key.seed, a_.key.restart, step == 0 ? a_.key.first : a_.key.trial, 0, index);
            const Found part =
                find_in_warp(gridDim.x, scale_draw(bits, total), [&](std::int64_t i) { return block_.parts[i]; });
            if (part.index != blockIdx.x)
                continue;
            const Found place = find_in_warp(
                own_, part.left, [&](std::int64_t i) { return mass(static_cast<int>(i), step == 0, scale); });
            if (lane_ == 0)
                a_.state->picks[trial] = first_ + place.index;
        }
    }

    // Distances of all rows from the picks.
    __device__ void measure(std::int32_t step) const
    {
        const int d = a_.rows.d, trials = trials_of(step), groups = groups_of(trials);
        for (int i = static_cast<int>(threadIdx.x); i < groups * group * d; i += threads) {
            const int trial = i / d, f = i % d;
            double value = 0.0;
            if (trial < trials)
                value = static_cast<double>(a_.rows.values[row_at(a_.rows, __ldcg(a_.state->picks + trial)) * d + f]);
            block_.trials[(trial / group * d + f) * group + trial % group] = value;
        }
        __syncthreads();
        const int lanes = (own_ + 31) / 32 * 32; // a warp has one group
        for (int at = static_cast<int>(threadIdx.x); at < groups * lanes; at += threads) {
            const int i = at % lanes, first = at / lanes * group;
            if (i >= own_)
                continue;
            double sum[group] = {};
            const T *value = block_.values + i;
            const double *trial = block_.trials + first * d;
#pragma unroll 4
            for (int f = 0; f < d; ++f, value += a_.each, trial += group) {
                const double x = static_cast<double>(*value);
#pragma unroll
                for (int c = 0; c < group; ++c)
                    add_term(sum[c], x, trial[c]);
            }
#pragma unroll
            for (int c = 0; c < group; ++c)
                if (first + c < trials)
                    block_.distances[(first + c) * a_.each + i] = weigh_distance(a_.rows, row(i), sum[c]);
        }
        __syncthreads();
    }

    __device__ void tell_gains(unsigned long long (*gains)[2], double scale) const
    {
        for (int trial = warp_; trial < a_.trials; trial += warps) {
            const double *distances = block_.distances + trial * a_.each;
            unsigned long long mine = 0;
            for (int i = lane_; i < own_; i += 32)
                if (distances[i] < block_.nearest[i])
                    mine += drawn_mass(i, block_.nearest[i], scale) - drawn_mass(i, distances[i], scale);
            mine = sum_lanes(mine);
            if (lane_ == 0 && mine != 0) {
                atomicAdd(&gains[trial][0], mine & 0xffffffffULL);
                atomicAdd(&gains[trial][1], mine >> 32);
            }
        }
    }
    // The trial that gains the most.
    __device__ int best_of(const unsigned long long (*gains)[2]) const
    {
        __shared__ UInt128 all[most_trials];
        if (static_cast<int>(threadIdx.x) < a_.trials)
            all[threadIdx.x] = (UInt128{__ldcg(&gains[threadIdx.x][1])} << 32) + __ldcg(&gains[threadIdx.x][0]);
        __syncthreads();
        return best_trial(a_.trials, [](int trial) { return all[trial]; });
    }
    // Adds the chosen trial to the centroids; true where a row still has the exponent of the largest v_i.
    __device__ bool take(int best, std::int32_t step, int exponent) const
    {
        bool top = false;
        for (int i = static_cast<int>(threadIdx.x); i < own_; i += threads) {
            const double distance = block_.distances[best * a_.each + i];
            const double nearest = step == 0 ? distance : fmin(block_.nearest[i], distance);
            block_.nearest[i] = nearest;
            top |= step != 0 && is_top(nearest, exponent);
        }
        return __syncthreads_or(top) != 0;
    }

  private:
    __device__ std::int64_t row(int i) const
    {
        return row_at(a_.rows, first_ + i);
    }
    // Entries are their own positions.
    __device__ unsigned long long drawn_mass(int i, double nearest, double scale) const
    {
        return static_cast<unsigned long long>(copies_of(a_.rows.counts, first_ + i)) *
               static_cast<unsigned long long>(quantise_mass(nearest, scale));
    }
    __device__ int trials_of(std::int32_t step) const
    {
        return step == 0 ? 1 : a_.trials;
    }

    const HeldRows<T> &a_;
    const HeldBlock<T> block_;
    const std::int64_t first_; // position
    const int own_, lane_, warp_;
};

__device__ void clear(HeldState &state, int slot)
{
    state.largest[slot] = 0;
    state.tops[slot] = 0;
    for (auto &gain : state.gains[slot])
        gain[0] = gain[1] = 0;
}

// Steps `from` to `to`; step 0 draws the first row.
template <typename T>
__global__ void __launch_bounds__(threads)
    held_kernel(const __grid_constant__ HeldRows<T> a, std::int32_t from, std::int32_t to)
{
    extern __shared__ double memory[];
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const bool speaks = blockIdx.x == 0 && threadIdx.x == 0;
    const Holder<T> holder(memory, a);
    HeldState &state = *a.state;
    holder.load(from != 0);
    bool scaled = from == 0;
    int exponent = 0;
    double scale = 0.0;
    std::int32_t step = from;
    for (; step < to; ++step) {
        const int slot = step & 1;
        if (scaled) {
            holder.tell_mass(step == 0, scale);
            grid.sync();
            scaled = step == 0 || __ldcg(&state.tops[slot]) != 0;
        }
        if (!scaled) {
            holder.raise_largest_of_all(&state.largest[slot]);
            grid.sync();
            const unsigned long long largest = __ldcg(&state.largest[slot]);
            if (largest == 0)
                break;
            exponent = square_exponent(__longlong_as_double(static_cast<long long>(largest)));
            scale = power_of_two(exponent);
            holder.tell_mass(false, scale);
            grid.sync();
        }
        if (speaks)
            clear(state, slot ^ 1); // all have read what the step before left there
        holder.pick(step, scale);
        grid.sync();
        holder.measure(step);
        int best = 0;
        if (step != 0) {
            holder.tell_gains(state.gains[slot], scale);
            grid.sync();
            best = holder.best_of(state.gains[slot]);
        }
        scaled = step != 0;
        if (holder.take(best, step, exponent) && threadIdx.x == 0)
            state.tops[slot ^ 1] = 1;
        if (speaks) {
            a.chosen[step] = __ldcg(&state.picks[best]);
            state.count = step + 1;
        }
    }
    if (speaks && step < to)
        state.done = 1;
    holder.store();
}

} // namespace

template <typename T>
std::optional<std::vector<std::int64_t>> held_positions(Context &context, const SeedRows<T> &rows, const SeedKey &key,
                                                        std::int32_t k)
{
    constexpr std::size_t fixed = 4096;                            // at most, of shared memory beside the block's
    constexpr std::int64_t most_counted = (1 << 18) / most_copies; // rows of a block: 64 bits hold their mass
    const std::int64_t units = context.facts.multiprocessors;
    const std::int64_t each = std::max<std::int64_t>((rows.n + units - 1) / units, 1),
                       blocks = (rows.n + each - 1) / each;
    const int trials = greedy_trials(k);
    const std::size_t bytes = HeldBlock<T>(nullptr, each, rows.d, trials, blocks).bytes;
    if (!context.facts.takes(Mechanism::held_rows) || rows.n == 0 || k < 2 ||
        (rows.counts != nullptr && each > most_counted) ||
        bytes + fixed > static_cast<std::size_t>(context.facts.shared_bytes_per_block) ||
        !context.make_room(static_cast<std::uint64_t>(8 * (rows.n + blocks + k)) + 4096))
        return {};
    const cudaStream_t stream = context.compute.get();
    const DeviceArray<double> nearest(context.budget, static_cast<std::size_t>(rows.n));
    const DeviceArray<unsigned long long> parts(context.budget, static_cast<std::size_t>(blocks));
    const DeviceArray<std::int64_t> chosen(context.budget, static_cast<std::size_t>(k));
    auto state = zeros<HeldState>(context.budget, 1, stream);
    HeldRows<T> held = {rows, key, trials, static_cast<std::int32_t>(each), state.get(), parts.get(), chosen.get()};
    held.rows.nearest = nearest.get();
    allow_memory(held_kernel<T>, bytes);
    HeldState host = {};
    for (std::int32_t from = 0; from < k && host.done == 0; from += steps_of_launch) {
        std::int32_t to = std::min(k, from + steps_of_launch);
        void *arguments[] = {&held, &from, &to};
        checked("cudaLaunchCooperativeKernel", [&] {
            return cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(held_kernel<T>),
                                               dim3(static_cast<unsigned>(blocks)), dim3(threads), arguments, bytes,
                                               stream);
        });
        host = context.fetch(state)[0];
    }
    return context.fetch(chosen.get(), static_cast<std::size_t>(host.count));
}

template std::optional<std::vector<std::int64_t>> held_positions<float>(Context &, const SeedRows<float> &,
                                                                        const SeedKey &, std::int32_t);
template std::optional<std::vector<std::int64_t>> held_positions<double>(Context &, const SeedRows<double> &,
                                                                         const SeedKey &, std::int32_t);

} // namespace pgkm::cuda
