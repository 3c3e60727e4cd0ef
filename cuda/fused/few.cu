// few.cu (fused) - an iteration over low-dimensional float32 rows with few clusters: the point
// in registers, one row per thread, sums that follow the rows.
//
// Reads each row once and one byte of its last label. Filter and margin: register.cuh. To use:
// d <= 16 and k <= 8, where the products of the tensor-core kernels would be mostly padding.
#include "fused/few.cuh"
#include "fused/resting.hpp"

namespace pgkm::cuda {
namespace {

// Rows `threads` apart, on their way from memory while the tile before is worked on. first: the thread's
// first row, within the launch. Whole: all of the tile's rows are there.
template <int D, int P, bool Padded, bool Whole>
__device__ void load_tile(const MoveArguments &a, int first, Tile<D, P> &tile)
{
    const int most = static_cast<int>(a.view.n) - 1, start = Whole ? first : min(first, most);
    const int d = Padded ? a.view.d : D;
    const auto *labels = static_cast<const std::uint8_t *>(a.last.values) + start;
    const float *values = a.view.values + std::int64_t{start} * d;
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const int row = Whole ? p * threads : min(p * threads, most - start);
        load_row<D>(values + row * d, 0, d, tile.x[p]);
        tile.last[p] = labels[row];
    }
}

template <int D, int P, bool Padded>
__device__ void load_next(const MoveArguments &a, int first, Tile<D, P> &tile)
{
    if (first + P * threads <= static_cast<int>(a.view.n)) // the same for all but the last tile's threads
        load_tile<D, P, Padded, true>(a, first, tile);
    else
        load_tile<D, P, Padded, false>(a, first, tile);
}

template <int D, int P, int Few, bool Padded>
__global__ void __launch_bounds__(threads, 2) few_kernel(const __grid_constant__ MoveArguments a)
{
    if (block_stopped(a.update) || (a.cells != nullptr && a.cells->serves))
        return;
    const Shared shared = carve<D>(0);
    const MoveCells cells = {static_cast<int>(shared.cells - shared_words(0)), a.view.k, a.view.d, replicas};
    cells.clear();
    cells.prepare_scales(a.view, a.floats);
    const float margin = prepare<D>(a, shared);
    const int n = static_cast<int>(a.view.n); // a launch has fewer than 2^31 rows
    Later later(shared.later);
    auto *carried = reinterpret_cast<Values<D> *>(shared.carried) + threadIdx.x / 32 * waiting<D>;
    const int step = static_cast<int>(gridDim.x) * threads * P, self = static_cast<int>(threadIdx.x);
    int first = static_cast<int>(blockIdx.x) * threads * P + self;
    Tile<D, P> next;
    load_next<D, P, Padded>(a, first, next);
    for (bool end = first - self >= n;; first += step, end = first - self >= n) {
        if (!end) {
            const Tile<D, P> tile = next;
            load_next<D, P, Padded>(a, first + step, next);
            int row[P];
#pragma unroll
            for (int p = 0; p < P; ++p)
                row[p] = first + p * threads;
            take_tile<D, P, Few>(a, shared, cells, later, carried, margin, tile, row);
        }
        while (later.full() || (end && !later.empty()))
            take_later<D>(a, cells, later, carried);
        if (end)
            break;
    }
    __syncthreads();
    cells.publish(a.update.sums);
    if (a.finish && arrives_last(&a.update.control->arrived))
        finish_iteration(a.update, shared.cells);
}

template <int D, int P, int Few, bool Padded>
void launch(const Stage<float> &stage, const MoveArguments &a)
{
    const std::size_t bytes = shared_bytes<D>(a);
    const auto kernel = few_kernel<D, P, Few, Padded>;
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(kernel, static_cast<int>(bytes));
    });
    int per_unit = 0;
    checked("cudaOccupancy", [&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, threads, bytes);
    });
    in_moves(a, stage.context.facts.multiprocessors * std::max(per_unit, 1), threads * P, [&](const MoveArguments &part, int blocks) {
        kernel<<<blocks, threads, bytes, stage.stream>>>(part);
        launched("few_kernel");
    });
}

} // namespace

void iterate_few(const Stage<float> &stage, MoveArguments a, const RestingCells *resting)
{
    a.replicas = replicas;
    if (resting != nullptr) {
        resting->prepare(a.update, stage.stream);
        iterate_few_resting(stage, a, resting->grid());
        a.cells = resting->grid().state;
    }
    for_few(a.view, [&](auto size, auto few, auto padded) {
        constexpr int D = decltype(size)::value;
        launch<D, rows_per_thread<D>, decltype(few)::value, decltype(padded)::value>(stage, a);
    });
}

} // namespace pgkm::cuda
