// trials.cuh (seed) - rows and trials of a step, and the numbers of the filter's bound (filter.cu).
#pragma once

#include "order/halves.cuh"
#include "seed/greedy.hpp"

namespace pgkm::cuda {

template <typename T>
__device__ inline std::int64_t row_number(const GreedyRows<T> &rows, std::int64_t position)
{
    return rows.order == nullptr ? position : rows.order[position];
}

template <typename T>
__device__ inline const T *row_at(const GreedyRows<T> &rows, std::int64_t position)
{
    return rows.values + row_number(rows, position) * rows.d;
}

template <typename T>
__device__ inline const T *picked_row(const GreedyRows<T> &rows, int trial)
{
    return rows.picked == nullptr ? row_at(rows, rows.state->seed.picks[trial]) : rows.picked + trial * rows.d;
}

// At most what float32 sums of a row's squares (order/ordered_rows.hpp) are off by, of themselves: a lane adds d / 32 +
// 4 of them at most, and lanes are joined five times.
__device__ inline float sums_error(int d)
{
    return static_cast<float>(d / 32 + 16) * 0x1p-23f;
}

// A row's reach for this v_i: t of the bound, raised; `lost`: at least |a|. A row at 0 comes no nearer; where distances
// underflow, any trial may count.
template <typename T>
__device__ inline float reach_of(const GreedyRows<T> &rows, std::int64_t position, double nearest, float lost)
{
    if (nearest == 0.0)
        return never_open;
    const double distance = rows.weights == nullptr ? nearest : nearest / rows.weights[position];
    if (nearest <= 0x1p-900 || distance <= 0x1p-900 || !rows.ordered.facts->usable)
        return always_open;
    return __double2float_ru((sqrt(distance) * rows.ordered.facts->scale * (1.0 + 0x1p-20) + lost) * (1.0 + 0x1p-19));
}

} // namespace pgkm::cuda
