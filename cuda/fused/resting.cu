// resting.cu (fused) - the cells of rows, and which of them rest in an iteration.
#include "plugin/check.hpp"
#include "plan/stages.hpp"
#include "fused/cells.cuh"
#include "fused/finish.cuh"
#include "device/load_row.cuh"
#include "fused/resting.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
// Rows that rest are passed over where at least so many of eight do.
constexpr int least_eighths = 5;
constexpr int pause = 8; // iterations that nothing is tried in after it did not serve
constexpr std::uint8_t nobody = 0xff;

__global__ void forget_kernel(RestingState *state) { *state = {{0, 0, 0, 0, 0}, -2}; }

template <int D>
__global__ void __launch_bounds__(threads) number_kernel(const float *values, std::int64_t n, const __grid_constant__ RestingGrid grid)
{
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += step) {
        float x[D];
        load_any_row<D>(values, i, grid.d, x);
        const int cell = cell_of<D>(grid, x);
        grid.of_row[i] = static_cast<std::uint16_t>(cell);
        if (i % resting_sample == 0)
            atomicAdd(grid.rows + cell, 1);
    }
}

// The box of a cell's rows: between the borders of its number, and a little more for the roundings of
// cell_of(), at most 2^-13 of a cell where there are 2^10 side by side.
template <int D>
__device__ void box_of(const RestingGrid &grid, int cell, Corners<D> &box)
{
    const int last = (1 << grid.bits) - 1;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        box.low[f] = box.high[f] = 0.0f;
        if (f >= grid.d)
            continue;
        const int place = cell >> (grid.bits * (grid.d - 1 - f)) & last;
        double low = grid.least[f], high = grid.most[f];
        if (grid.scale[f] > 0.0f) { // else one cell has it all
            const double from = static_cast<double>(grid.low[f]), width = 1.0 / static_cast<double>(grid.scale[f]);
            if (place > 0)
                low = fmax(low, from + (place - 0x1p-8) * width);
            if (place < last)
                high = fmin(high, from + (place + 1 + 0x1p-8) * width);
        }
        box.low[f] = __double2float_rd(low);
        box.high[f] = __double2float_ru(high);
    }
}

// The cluster that all of a box is with, or `nobody`.
template <int D>
__device__ std::uint8_t cluster_of(Corners<D> &box, const float *centroids, int k)
{
    float least = INFINITY;
    int pivot = 0;
    for (int j = 0; j < k; ++j) {
        const float sum = from_middle<D>(box, centroids + j * D);
        pivot = sum < least ? j : pivot;
        least = fminf(least, sum);
    }
    measure_from<D>(box, centroids + pivot * D);
    for (int j = 0; j < k; ++j)
        if (j != pivot && reaches<D>(box, centroids + j * D))
            return nobody;
    return static_cast<std::uint8_t>(pivot);
}

template <int D>
__global__ void __launch_bounds__(threads)
    rest_kernel(const __grid_constant__ UpdateArguments<float> a, const __grid_constant__ RestingGrid grid)
{
    __shared__ float centroids[panel_group * D];
    __shared__ int rows;
    const int iteration = a.control->n_iter;
    if (block_stopped(a) || iteration < grid.state->again)
        return;
    const bool follows = grid.state->recorded == iteration - 1;
    for (int i = static_cast<int>(threadIdx.x); i < a.k * D; i += threads)
        centroids[i] = i % D < a.d ? a.centroids[i / D * a.d + i % D] : 0.0f;
    if (threadIdx.x == 0)
        rows = 0;
    __syncthreads();
    const int cell = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
    const int count = grid.rows[cell];
    Corners<D> box;
    box_of<D>(grid, cell, box);
    const std::uint8_t now = cluster_of<D>(box, centroids, a.k), before = grid.with[cell];
    const bool rests = follows && now != nobody && now == before;
    grid.with[cell] = now;
    const unsigned bits = __ballot_sync(~0u, rests);
    if ((threadIdx.x & 31) == 0)
        grid.rest[cell / 32] = bits;
    const int resting = __reduce_add_sync(~0u, rests ? count : 0);
    if ((threadIdx.x & 31) == 0 && resting != 0)
        atomicAdd(&rows, resting);
    __syncthreads();
    if (threadIdx.x == 0 && rows != 0)
        atomicAdd(&grid.state->candidates, static_cast<unsigned long long>(rows));
    if (!arrives_last(&grid.state->arrived) || threadIdx.x != 0)
        return;
    RestingState &state = *grid.state;
    state.serves = 8 * atomicExch(&state.candidates, 0ull) >= static_cast<unsigned long long>(least_eighths * grid.sampled);
    if (!state.serves && follows)
        state.again = iteration + pause;
    state.recorded = iteration;
    state.arrived = 0;
}

// Of at most resting_cells, where their number is one of threads as well.
int bits_per_feature(int d) { return d == 1 ? 10 : 16 / d; }

} // namespace

RestingCells::RestingCells(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    grid_.d = d;
    grid_.bits = bits_per_feature(d);
    grid_.sampled = (n + resting_sample - 1) / resting_sample;
    divide_box(box, grid_.bits, grid_.low, grid_.scale);
    std::copy(box.min.begin(), box.min.end(), grid_.least);
    std::copy(box.max.begin(), box.max.end(), grid_.most);
    const auto cells = std::size_t{1} << (grid_.bits * d);
    of_row_ = DeviceArray<std::uint16_t>(context.budget, static_cast<std::size_t>(n + resting_stride));
    rows_ = DeviceArray<std::int32_t>(context.budget, cells);
    with_ = DeviceArray<std::uint8_t>(context.budget, cells);
    rest_ = DeviceArray<std::uint32_t>(context.budget, cells / 32);
    state_ = DeviceArray<RestingState>(context.budget, 1);
    grid_.of_row = of_row_.get();
    grid_.rows = rows_.get();
    grid_.with = with_.get();
    grid_.rest = rest_.get();
    grid_.state = state_.get();
    const cudaStream_t stream = context.compute.get();
    checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(of_row_.get() + n, 0, resting_stride * sizeof(std::uint16_t), stream); });
    rows_.fill_zero(stream);
    with_.fill_zero(stream);
    forget(stream);
    for_padded(d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        const int blocks = blocks_for(n, threads, context.facts.multiprocessors * 8);
        number_kernel<D><<<blocks, threads, 0, stream>>>(values, n, grid_);
        launched("number_kernel");
    });
}

void RestingCells::forget(cudaStream_t stream)
{
    forget_kernel<<<1, 1, 0, stream>>>(state_.get()); // a graph cannot keep a copy from the host's stack
    launched("forget_kernel");
}

void RestingCells::prepare(const UpdateArguments<float> &arguments, cudaStream_t stream) const
{
    for_padded(arguments.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        const auto blocks = static_cast<unsigned>(with_.count() / threads);
        rest_kernel<D><<<blocks, threads, 0, stream>>>(arguments, grid_);
        launched("rest_kernel");
    });
}

} // namespace pgkm::cuda
