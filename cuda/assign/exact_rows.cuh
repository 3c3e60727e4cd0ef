// exact_rows.cuh - assignment without a filter, by the contract's own distance in float64: labels need no settling.
//
// A thread takes a row: held in registers (D features at most; Aggarwal 2013, section 4.1; Li, Zhao, Chu, Liu 2010,
// Algorithm 3) or walked (D is 0; Aggarwal 2013, section 4.2). Where the centroids lie is the strategy: Room says it.
// Rows are read in either layout (columns.hpp).
// Centroids that do not fit the room come in batches, a launch each; a later batch starts from the label of those
// before it, whose distance is computed again.
#pragma once

#include "assign/columns.hpp"
#include "device/exact.cuh"

namespace pgkm::cuda {

// Centroids in global memory; the caches broadcast what all threads of a warp read.
template <typename T>
struct GlobalRoom {
    static constexpr int threads = 128, blocks = 4;
    const T *centroids; // of the batch
    int d;

    __device__ void fill(int) {}
    __device__ double operator()(int j, int b, int f) const
    {
        return static_cast<double>(centroids[std::int64_t{j + b} * d + f]);
    }
};

// Calls body(std::integral_constant<int, D>{}) with the least D >= d that these kernels hold in registers; false beyond
// exact_register_d features.
template <typename Body>
bool with_exact_size(int d, Body &&body)
{
    return with_size<1, 2, 3, 4, 6, 8, 12, 16, exact_register_d>(d, body);
}

// Room::blocks of a multiprocessor leave as many registers as rows need; 0: the compiler sees to that by itself.
// Rows of the view against `count` centroids from `first` on.
template <int D, typename T, typename Room>
__global__ void __launch_bounds__(Room::threads, D == 0 ? 0 : Room::blocks)
    exact_rows_kernel(View<T> view, RowValues<T> rows, const Control *control, Room room, std::int32_t *labels,
                      int first, int count)
{
    if (block_stopped(control))
        return;
    room.fill(count);
    const std::int64_t stride = std::int64_t{gridDim.x} * Room::threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * Room::threads + threadIdx.x; i < view.n; i += stride) {
        const T *from = rows.values + i * rows.row_step;
        [[maybe_unused]] double x[D == 0 ? 1 : D];
        if constexpr (D > 0)
#pragma unroll
            for (int f = 0; f < D; ++f)
                x[f] = f < view.d ? static_cast<double>(from[f * rows.feature_step]) : 0.0;
        const auto row = [&](int f) {
            if constexpr (D == 0)
                return static_cast<double>(from[f * rows.feature_step]);
            else
                return x[f];
        };
        Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
        if (first > 0) {
            best.label = labels[i];
            best.distance =
                exact_distance(view.values + i * view.d, view.centroids + std::int64_t{best.label} * view.d, view.d);
        }
        labels[i] = nearer<D>(row, room, count, view.d, first, best).label;
    }
}

// Enqueues one batch for the view, whose values are `values`.
template <int D, typename T, typename Room>
void launch_exact_rows(const Stage<T> &stage, const View<T> &view, const RowValues<T> &values, const Room &room,
                       std::size_t bytes, std::int32_t *labels, int first, int count)
{
    View<T> batch = view;
    batch.k = count;
    in_exact_launches(stage, batch, 1e12, [&](std::int64_t from, std::int64_t rows) {
        const int blocks = blocks_for(rows, Room::threads, stage.context.facts.multiprocessors * 2048 / Room::threads);
        enqueue(exact_rows_kernel<D, T, Room>, blocks, Room::threads, bytes, stage.stream, slice(view, from, rows),
                values.from(from), stage.control, room, labels + from, first, count);
    });
}

} // namespace pgkm::cuda
