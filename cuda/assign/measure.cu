// measure.cu - exact distances of rows to the centroids of their labels, and sums of them, for any shape.
//
// A row a thread. From 17 features on, a warp loads its 32 rows and their centroids together, some features of all of
// them at a time, into shared memory of its own. Up to 256 clusters, a block adds limbs and counts in shared memory,
// and sends them to the 64-bit sums after every 252 rows, so that 32 bits suffice; with more clusters rows go to the
// 64-bit sums at once, and so do rows that stand for several. Distances are the contract's.
#include "assign/measure.hpp"

#include "device/exact.cuh"
#include "device/limbs.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int rows_per_round = 252; // at most square_additions

// Features of a warp's rows in shared memory at a time, and the distance of two rows there, which is odd.
template <typename T>
constexpr int stage_width = 128 / sizeof(T);
template <typename T>
constexpr int stage_stride = stage_width<T> + 1;
template <typename T>
constexpr int stage_values = 2 * 32 * stage_stride<T>; // of a warp: its rows, their centroids
constexpr int staged_d = 17;                           // from so many features on

// The contract's distance of the lane's row, the `first`th and lane-th of `count` that the warp has, from the centroid
// of its label.
template <typename T>
__device__ double distance_in_warp(const View<T> &view, std::int64_t first, int count, int label, T *stage)
{
    constexpr int lanes = stage_width<T>, together = 32 / lanes, ahead = 8; // rows of a load, loads under way
    const int d = view.d, lane = static_cast<int>(threadIdx.x & 31), place = lane % lanes, member = lane / lanes;
    const int slices = (d + lanes - 1) / lanes, width = (d + slices - 1) / slices;
    T *rows = stage, *centroids = stage + 32 * stage_stride<T>;
    double sum = 0.0;
    for (int from = 0; from < d; from += width) {
        const int here = min(width, d - from), f = from + min(place, here - 1);
        __syncwarp();
        for (int i = 0; i < count; i += ahead * together) {
            T x[ahead], c[ahead];
#pragma unroll
            for (int b = 0; b < ahead; ++b) {
                const int row = min(i + b * together + member, count - 1);
                const int j = __shfl_sync(~0u, label, row);
                x[b] = view.values[(first + row) * d + f];
                c[b] = view.centroids[std::int64_t{j} * d + f];
            }
#pragma unroll
            for (int b = 0; b < ahead; ++b) {
                const int at = min(i + b * together + member, count - 1) * stage_stride<T> + place;
                rows[at] = x[b];
                centroids[at] = c[b];
            }
        }
        __syncwarp();
        const T *own_row = rows + lane * stage_stride<T>, *own_centroid = centroids + lane * stage_stride<T>;
#pragma unroll 8
        for (int g = 0; g < here; ++g)
            add_term(sum, own_row[g], own_centroid[g]);
    }
    return sum;
}

template <typename T, bool Shared>
__global__ void __launch_bounds__(threads) measure_kernel(MeasureArguments<T> a)
{
    if (block_stopped(a.control))
        return;
    extern __shared__ double memory[]; // a stage for each warp, where rows are staged; k x measure_sums
    const View<T> &view = a.view;
    const bool staged = view.d >= staged_d;
    T *stage = reinterpret_cast<T *>(memory) + threadIdx.x / 32 * stage_values<T>;
    auto *own =
        reinterpret_cast<std::int32_t *>(reinterpret_cast<T *>(memory) + (staged ? threads / 32 * stage_values<T> : 0));
    const int n_sums = view.k * measure_sums;
    if (Shared) {
        for (int i = threadIdx.x; i < n_sums; i += threads)
            own[i] = 0;
        __syncthreads();
    }
    for (std::int64_t start = std::int64_t{blockIdx.x} * rows_per_round; start < view.n;
         start += std::int64_t{gridDim.x} * rows_per_round) {
        const std::int64_t row = start + threadIdx.x;
        const bool valid = threadIdx.x < rows_per_round && row < view.n;
        const int label = valid ? a.labels[row] : 0;
        double distance = 0.0;
        if (staged) {
            const std::int64_t first = row - (threadIdx.x & 31);
            const int count = __popc(__ballot_sync(~0u, valid));
            if (count > 0)
                distance = distance_in_warp(view, first, count, label, stage);
        } else if (valid) {
            distance =
                exact_distance(view.values + row * view.d, view.centroids + std::int64_t{label} * view.d, view.d);
        }
        if (valid) {
            if (a.distances != nullptr)
                a.distances[row] = distance;
            if (a.sums != nullptr) {
                const double square = view.weights == nullptr ? distance : view.weights[row] * distance,
                             scale = power_of_two(a.distance_exponent);
                if (Shared)
                    add_square(own + label * measure_sums, square, scale);
                else if (view.counts != nullptr)
                    add_squares(a.sums + std::int64_t{label} * measure_sums, square, scale, view.counts[row]);
                else
                    add_square(a.sums + std::int64_t{label} * measure_sums, square, scale);
            }
        }
        if (Shared)
            flush_counters<threads>(own, n_sums, [&](int i) { return a.sums + i; });
    }
}

} // namespace

template <typename T>
void measure(const MeasureArguments<T> &arguments, int multiprocessors, int shared_bytes, cudaStream_t stream)
{
    const int blocks = blocks_for(arguments.view.n, rows_per_round, multiprocessors * 8);
    const std::size_t sums = std::size_t{4} * static_cast<std::size_t>(arguments.view.k) * measure_sums;
    const std::size_t stages = arguments.view.d >= staged_d ? threads / 32 * stage_values<T> * sizeof(T) : 0;
    // Beyond some hundred clusters clearing the block's sums costs more than the atomics.
    const bool shared = arguments.sums != nullptr && arguments.view.counts == nullptr && arguments.view.k <= 256 &&
                        sums <= static_cast<std::size_t>(shared_bytes);
    const auto kernel = shared ? measure_kernel<T, true> : measure_kernel<T, false>;
    const std::size_t bytes = stages + (shared ? sums : 0);
    enqueue(kernel, blocks, threads, bytes, stream, arguments);
}

template void measure<float>(const MeasureArguments<float> &, int, int, cudaStream_t);
template void measure<double>(const MeasureArguments<double> &, int, int, cudaStream_t);

} // namespace pgkm::cuda
