// later_rows.cuh - rows of few features that a warp put off (Later): those that no filter decided, and those
// whose label changed.
#pragma once

#include "device/exact.cuh"
#include "fused/moves.hpp"

namespace pgkm::cuda {
namespace {

// Labels of open rows, one per lane. Float32 sums of squares err in proportion to the distance,
// not to the row's length as the products do: by (d + 3) 2^-24 of it. What is nearer to each
// other than that gets the contract's distances to all centroids.
template <int D>
__device__ __forceinline__ Later::Entry settle_later(const MoveArguments &a, Later::Entry entry)
{
    if (entry.row < 0)
        return entry;
    const int d = a.view.d;
    const float *row = a.view.values + std::int64_t{entry.row} * d;
    float x[D];
#pragma unroll
    for (int f = 0; f < D; ++f)
        x[f] = f < d ? row[f] : 0.0f;
    float least = INFINITY, second = INFINITY;
    int label = 0;
#pragma unroll 4
    for (int j = 0; j < a.view.k; ++j) {
        const float *c = a.view.centroids + j * d;
        float sum = 0.0f;
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const float difference = f < d ? x[f] - __ldg(c + f) : 0.0f;
            sum = __fmaf_rn(difference, difference, sum);
        }
        second = fminf(second, fmaxf(least, sum));
        label = sum < least ? j : label;
        least = fminf(least, sum);
    }
    if (!(second >
          least * (1.0f + static_cast<float>(2 * d + 12) * 0x1p-24f) + 0x1p-100f)) // below that, underflow counts
        label = nearest_by_thread(row, a.view.centroids, a.view.k, d).label;
    entry.to = static_cast<std::int16_t>(label);
    return entry;
}

// Moves rows, one per lane, between the sums.
template <int D>
__device__ __forceinline__ void move_later(const MoveArguments &a, const MoveCounters &counters, Later::Entry entry)
{
    if (entry.row < 0)
        return;
    const int from = a.last.wide ? static_cast<std::uint16_t>(entry.from) : entry.from;
    float x[D];
    load_any_row<D>(a.view.values, entry.row, a.view.d, x);
    move_row<D>(a.view, counters, a.floats, x, from, entry.to, a.last.none());
    a.last.set(entry.row, entry.to);
}

// The rows that a warp put off. Inlined once into a kernel, where calls would cost its loop registers.
class LaterRows {
  public:
    static constexpr int capacity = 2 * Later::capacity; // entries

    // memory: capacity entries of this warp.
    __device__ explicit LaterRows(Later::Entry *memory) : moved_(memory), open_(memory + Later::capacity) {}
    // A row per lane, where its label changed or stays open (to < 0).
    __device__ __forceinline__ void push(bool changed, const Later::Entry &entry)
    {
        moved_.push(changed && entry.to >= 0, entry);
        if (__any_sync(~0u, changed && entry.to < 0))
            open_.push(changed && entry.to < 0, entry);
    }
    // Takes 32 rows at a time, in the end all there are. Labels: those alone.
    template <int D, bool Labels = false>
    __device__ __forceinline__ void take(const MoveArguments &a, const MoveCounters &counters, bool end)
    {
        for (;;) {
            if (!Labels && (moved_.full() || (end && open_.empty() && !moved_.empty()))) {
                move_later<D>(a, counters, moved_.pop());
            } else if (open_.full() || (end && !open_.empty())) {
                const Later::Entry entry = settle_later<D>(a, open_.pop());
                if constexpr (!Labels)
                    moved_.push(entry.row >= 0 && entry.to != entry.from, entry);
                else if (entry.row >= 0)
                    a.labels[entry.row] = entry.to;
            } else {
                return;
            }
        }
    }

  private:
    Later moved_, open_;
};

} // namespace
} // namespace pgkm::cuda
