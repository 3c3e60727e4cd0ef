// few.cu (fused) - an iteration over low-dimensional float32 rows with few clusters: the point
// in registers, one row per thread, sums that follow the rows.
//
// Reads each row once and one byte of its last label. Filter and margin: register.cuh. To use:
// d <= 16 and k <= 8, where the products of the tensor-core kernels would be mostly padding.
#include <cuda_pipeline.h>

#include "../choose.hpp"
#include "../exact.cuh"
#include "moves.hpp"
#include "register.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int replicas = 32;
constexpr int stages = 3; // tiles of rows on their way to a thread
constexpr int later_words = threads / 32 * Later::capacity * 2;

struct Shared {
    float       *panel;   // one group of eight centroids, as in operands.cuh
    float4      *factors; // .w: the filter's shift
    float       *radius;
    Later::Entry *later; // of this warp
    float        *ahead; // stages x P x threads x D
    std::int32_t *cells;
};

template <int D, int P>
__device__ Shared carve()
{
    std::int32_t *memory = shared_words(0);
    Shared s;
    s.factors = reinterpret_cast<float4 *>(memory);
    s.panel = reinterpret_cast<float *>(s.factors + D);
    s.radius = s.panel + (D + 1) * panel_group;
    s.later = reinterpret_cast<Later::Entry *>(s.radius + panel_group) + threadIdx.x / 32 * Later::capacity;
    s.ahead = s.radius + panel_group + later_words;
    s.cells = reinterpret_cast<std::int32_t *>(s.ahead + stages * P * threads * D);
    return s;
}

template <int D, int P>
std::size_t shared_bytes(const MoveArguments &a)
{
    return D * 16 + ((D + 1) * panel_group + panel_group + later_words + stages * P * threads * D) * 4 +
           std::max(MoveCells::count(a.view.k, a.view.d, replicas) * 4, finish_bytes(a.view.k, a.view.d));
}

// The panel of the current centroids; returns the margin that follows from their reach.
template <int D>
__device__ float prepare(const MoveArguments &a, const Shared &shared)
{
    const int self = static_cast<int>(threadIdx.x), d = a.view.d;
    if (self < D)
        shared.factors[self] = make_float4(0.0f, 0.0f, 0.0f, self < d ? a.shift[self] : 0.0f);
    if (self < panel_group) {
        double square = 0.0;
        for (int f = 0; f < D; ++f) {
            const float centred = self < a.view.k && f < d ? a.view.centroids[self * d + f] - a.shift[f] : 0.0f;
            square += static_cast<double>(centred) * static_cast<double>(centred);
            shared.panel[f * panel_group + self] = centred;
        }
        shared.panel[D * panel_group + self] = self < a.view.k ? static_cast<float>(square / 2) : INFINITY;
        shared.radius[self] = __double2float_ru(sqrt(square) * (1.0 + 0x1p-40));
    }
    __syncthreads();
    float radius = 0.0f;
    for (int j = 0; j < panel_group; ++j)
        radius = fmaxf(radius, shared.radius[j]);
    return register_margin({radius, a.head->box}, d);
}

// The rows that a warp put off: those without a label are settled, those that moved are moved.
__device__ __noinline__ void take_later(const MoveArguments &a, const MoveCells &cells, Later::Entry entry)
{
    if (entry.row < 0)
        return;
    const float *x = a.view.values + std::int64_t{entry.row} * a.view.d;
    int to = entry.to;
    if (to < 0)
        to = nearest_by_thread(x, a.view.centroids, a.view.k, a.view.d).label;
    if (to == entry.from)
        return;
    const int replica = static_cast<int>(threadIdx.x) & (replicas - 1);
    for (int f = 0; f < a.view.d; ++f)
        cells.move(entry.from, to, a.last.none(), f, feature_limbs15(a.view, entry.row, f, x[f], a.floats), replica);
    cells.move(entry.from, to, a.last.none(), a.view.d, mass_limbs15(a.view, entry.row), replica);
    a.last.set(entry.row, to);
}

// Rows on their way to a thread: tiles ahead in shared memory, copied asynchronously and read by
// the thread that asked for them, so that no barrier is needed; labels in registers.
template <int D, int P, bool Padded>
class Ahead {
  public:
    __device__ Ahead(const MoveArguments &a, float *memory) : a_(a), memory_(memory + threadIdx.x * D)
    {
        for (int f = a.view.d; Padded && f < D; ++f)
            for (int i = 0; i < stages * P; ++i)
                memory_[i * threads * D + f] = 0.0f;
    }
    // Starts the copy of the tile that begins at row `first`; beyond the end any row will do.
    __device__ void fetch(int stage, std::int64_t first)
    {
        const std::int64_t left = max(a_.view.n - 1 - first, std::int64_t{0}), own = min(first, a_.view.n - 1);
        const int d = Padded ? a_.view.d : D;
        const float *from = a_.view.values + own * d;
        float *to = memory_ + stage * P * threads * D;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const float *row = from + static_cast<int>(min(std::int64_t{p} * threads, left)) * d;
            constexpr int width = Padded || D % 2 != 0 ? 1 : D % 4 != 0 ? 2 : 4;
#pragma unroll
            for (int f = 0; f < D; f += width)
                if (!Padded || f < d)
                    __pipeline_memcpy_async(to + p * threads * D + f, row + f, width * 4);
        }
        __pipeline_commit();
    }
    __device__ void labels(std::int64_t first, int (&last)[P]) const
    {
        const std::int64_t left = max(a_.view.n - 1 - first, std::int64_t{0});
        const auto *from = static_cast<const std::uint8_t *>(a_.last.values) + min(first, a_.view.n - 1);
#pragma unroll
        for (int p = 0; p < P; ++p)
            last[p] = from[static_cast<int>(min(std::int64_t{p} * threads, left))];
    }
    // The centred and negated values of a tile that was fetched stages - 1 fetches ago.
    __device__ void take(int stage, const float4 *factors, float (&negated)[P][D]) const
    {
        __pipeline_wait_prior(stages - 1);
        const float *from = memory_ + stage * P * threads * D;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            float x[D];
            load_row<D>(from + p * threads * D, 0, D, x);
#pragma unroll
            for (int f = 0; f < D; ++f)
                negated[p][f] = factors[f].w - x[f];
        }
    }

  private:
    const MoveArguments &a_;
    float               *memory_; // stages x P x threads x D, from the thread's own on
};

template <int D, int P, int Few, bool Padded>
__global__ void __launch_bounds__(threads, 3) few_kernel(const __grid_constant__ MoveArguments a)
{
    if (block_stopped(a.update))
        return;
    const Shared shared = carve<D, P>();
    const MoveCells cells = {static_cast<int>(shared.cells - shared_words(0)), a.view.k, a.view.d, replicas};
    cells.clear();
    const float margin = prepare<D>(a, shared);
    const int n = static_cast<int>(a.view.n); // a launch has fewer than 2^31 rows
    Later later(shared.later);
    const std::int64_t tile_rows = std::int64_t{threads} * P, step = gridDim.x * tile_rows;
    std::int64_t tile = blockIdx.x * tile_rows;
    Ahead<D, P, Padded> ahead(a, shared.ahead);
    for (int stage = 0; stage < stages - 1; ++stage)
        ahead.fetch(stage, tile + stage * step + threadIdx.x);
    int next[P];
    ahead.labels(tile + threadIdx.x, next);
    for (int stage = 0; tile < n; tile += step, stage = stage == stages - 1 ? 0 : stage + 1) {
        ahead.fetch(stage == 0 ? stages - 1 : stage - 1, tile + (stages - 1) * step + threadIdx.x);
        int last[P];
#pragma unroll
        for (int p = 0; p < P; ++p)
            last[p] = next[p];
        ahead.labels(tile + step + threadIdx.x, next);
        float negated[P][D];
        ahead.take(stage, shared.factors, negated);
        Best best[P];
        filter<D, P, Few>(shared.panel, 1, 0, negated, best);
        bool same = true;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            if (!(best[p].second > best[p].least + margin))
                best[p].index = -1;
            same = same && best[p].index == last[p];
        }
        if (__all_sync(~0u, same))
            continue;
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const int row = static_cast<int>(tile) + p * threads + static_cast<int>(threadIdx.x);
            later.push(row < n && best[p].index != last[p], Later::entry(row, last[p], best[p].index));
            if (later.full())
                take_later(a, cells, later.pop());
        }
    }
    take_later(a, cells, later.pop());
    __syncthreads();
    cells.publish(a.update.sums);
    if (a.finish && arrives_last(a.update.control))
        finish_iteration(a.update, shared.cells);
}

template <int D, int P, int Few, bool Padded>
void launch(const Stage<float> &stage, const MoveArguments &a)
{
    const std::size_t bytes = shared_bytes<D, P>(a);
    const auto kernel = few_kernel<D, P, Few, Padded>;
    checked("cudaFuncSetAttribute", [&] {
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
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

template <int D, int Few>
void launch_padded(const Stage<float> &stage, const MoveArguments &a)
{
    constexpr int P = D <= 4 ? 4 : D <= 8 ? 2 : 1;
    if constexpr (D > 4)
        if (a.view.d < D)
            return launch<D, P, Few, true>(stage, a);
    launch<D, P, Few, false>(stage, a);
}

template <int D>
void launch_for(const Stage<float> &stage, const MoveArguments &a)
{
    if (a.view.k <= 4)
        launch_padded<D, 4>(stage, a);
    else
        launch_padded<D, panel_group>(stage, a);
}

} // namespace

void iterate_few(const Stage<float> &stage, MoveArguments a)
{
    a.replicas = replicas;
    switch (register_size(a.view.d)) {
    case 1: return launch_for<1>(stage, a);
    case 2: return launch_for<2>(stage, a);
    case 3: return launch_for<3>(stage, a);
    case 4: return launch_for<4>(stage, a);
    case 6: return launch_for<6>(stage, a);
    case 8: return launch_for<8>(stage, a);
    case 12: return launch_for<12>(stage, a);
    default: return launch_for<16>(stage, a);
    }
}

} // namespace pgkm::cuda
