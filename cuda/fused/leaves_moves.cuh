// leaves_moves.cuh - how rows of leaves move between sums (moves.cuh): those of the block in shared memory or, where
// clusters are many, the problem's own.
#pragma once

#include "fused/leaves.hpp"
#include "fused/moves.hpp"

namespace pgkm::cuda {
namespace {

struct LeafSums {
    MoveCounters counters; // of no clusters where the sums are the problem's
    bool in_block;

    // offset: of the block's sums in its shared memory, in words.
    __device__ LeafSums(const MoveArguments &a, int offset, bool has_sums)
        : counters{offset, has_sums ? a.view.k : 0, a.view.d, a.replicas}, in_block(has_sums)
    {
    }
    __device__ void prepare(const MoveArguments &a) const
    {
        counters.clear();
        counters.prepare_scales(a.view, a.floats);
    }

    // Moves rows, one a lane, where there is one, and notes their labels; by the whole warp.
    template <int D>
    __device__ __noinline__ void move(const MoveArguments &a, const LeafRows &leaves, Later::Entry entry) const
    {
        const bool exists = entry.row >= 0;
        const int from = a.last.wide ? static_cast<std::uint16_t>(entry.from) : entry.from;
        float x[D] = {};
        if (exists) {
            load_row<D>(leaves.values, entry.row, D, x);
            a.last.set(entry.row, entry.to);
        }
        if (!in_block)
            return move_in_problem<D>(a, x, exists, from, entry.to);
        if (exists)
            move_row<D>(a.view, counters, a.floats, x, from, entry.to, a.last.none());
    }

  private:
    template <int D>
    __device__ void move_in_problem(const MoveArguments &a, const float (&x)[D], bool exists, int from, int to) const
    {
        const int d = a.view.d, none = a.last.none();
        // All from one cluster to another: the warp adds up first.
        const int own = from << 16 | to, first = __shfl_sync(~0u, own, 0),
                  pair = exists ? own : first; // lane 0's exists
        int same;
        __match_all_sync(~0u, pair, &same);
        const bool adds = same != 0 ? (threadIdx.x & 31) == 0 : exists;
        for (int f = 0; f <= d; ++f) {
            Limbs15 limbs = {0, 0, exists ? 1 : 0};
            if (f < d && exists)
                limbs = feature_limbs15(a.view, f, value_of<D>(x, f), counters.scaling(f), a.floats);
            if (same != 0)
                limbs = {__reduce_add_sync(~0u, limbs.high), __reduce_add_sync(~0u, limbs.middle),
                         __reduce_add_sync(~0u, limbs.low)};
            if (!adds)
                continue;
            std::int64_t *to_sum = sum_of_problem(a, to, f);
            const std::int64_t high = std::int64_t{limbs.high} * 128,
                               low = std::int64_t{limbs.middle} * 32768 + limbs.low; // as publish() has it
            add64(to_sum, high);
            add64(to_sum + 1, low);
            if (from == none)
                continue;
            std::int64_t *from_sum = sum_of_problem(a, from, f);
            add64(from_sum, -high);
            add64(from_sum + 1, -low);
        }
    }
    __device__ static std::int64_t *sum_of_problem(const MoveArguments &a, int cluster, int f)
    {
        return f < a.view.d ? a.update.sums.totals + (std::int64_t{cluster} * a.view.d + f) * 2
                            : a.update.sums.masses + std::int64_t{cluster} * 2;
    }
    // x[f] without an index that registers do not take.
    template <int D>
    __device__ static float value_of(const float (&x)[D], int f)
    {
        float value = x[0];
#pragma unroll
        for (int i = 1; i < D; ++i)
            value = f == i ? x[i] : value;
        return value;
    }
};

} // namespace
} // namespace pgkm::cuda
