// few.cu (fused) - an iteration over low-dimensional float32 rows with few clusters: the point
// in registers, one row per thread, sums that follow the rows.
//
// Reads each row once and one byte of its last label. Filter and margin: register.cuh. To use:
// d <= 16 and k <= 8, where the products of the tensor-core kernels would be mostly padding.
#include "../choose.hpp"
#include "../exact.cuh"
#include "moves.hpp"
#include "register.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int replicas = 32;
// Entries of a warp's queue: those of a tile's P rows per lane beside 31 that wait.
template <int D>
constexpr int rows_per_thread = D <= 4 ? 4 : D <= 8 ? 2 : 1;
template <int D>
constexpr int waiting = 32 * (rows_per_thread<D> + 1);
template <int D>
constexpr int later_words = threads / 32 * waiting<D> * 2;

struct Shared {
    float       *panel;   // one group of eight centroids, as in operands.cuh
    float4      *factors; // .w: the filter's shift
    float       *radius;
    Later::Entry *later; // of this warp
    void         *carried; // Values of all warps' entries
    std::int32_t *cells;
};

// A row's values wait with it where they are few: its line would have left the first-level cache.
template <int D>
constexpr bool carries = D <= 4;

template <int D>
constexpr int carried_words = carries<D> ? threads / 32 * waiting<D> * D : 0;

template <int D>
__device__ Shared carve()
{
    std::int32_t *memory = shared_words(0);
    Shared s;
    s.factors = reinterpret_cast<float4 *>(memory);
    s.panel = reinterpret_cast<float *>(s.factors + D);
    s.radius = s.panel + (D + 1) * panel_group;
    s.later = reinterpret_cast<Later::Entry *>(s.radius + panel_group) + threadIdx.x / 32 * waiting<D>;
    s.carried = s.radius + panel_group + later_words<D>;
    s.cells = reinterpret_cast<std::int32_t *>(s.carried) + carried_words<D>;
    return s;
}

template <int D>
std::size_t shared_bytes(const MoveArguments &a)
{
    return D * 16 + ((D + 1) * panel_group + panel_group + later_words<D> + carried_words<D>) * 4 +
           MoveCells::bytes(a.view.k, a.view.d, replicas);
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

template <int D>
struct alignas(D == 2 || D == 4 ? D * 4 : 4) Values {
    float x[D];
};

// The rows that a warp put off: those without a label are settled, those that moved are moved.
template <int D>
__device__ __forceinline__ void take_later(const MoveArguments &a, const MoveCells &cells, Later &later, const Values<D> *carried)
{
    int place;
    const Later::Entry entry = later.pop(place);
    if (entry.row < 0)
        return;
    int to = entry.to;
    if (to < 0)
        to = nearest_by_thread(a.view.values + std::int64_t{entry.row} * a.view.d, a.view.centroids, a.view.k, a.view.d).label;
    if (to == entry.from)
        return;
    Values<D> values;
    if constexpr (carries<D>)
        values = carried[place];
    else
        load_any_row<D>(a.view.values, entry.row, a.view.d, values.x);
    move_row<D>(a.view, cells, a.floats, entry.row, values.x, entry.from, to, a.last.none());
    a.last.set(entry.row, to);
}

// A thread's rows of one tile, `threads` apart, and their last labels, on their way from memory
// while the tile before is worked on.
template <int D, int P>
struct Tile {
    float x[P][D];
    int   last[P];
};

// first: the thread's first row, within the launch. Whole: all of the tile's rows are there.
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
    if (block_stopped(a.update))
        return;
    const Shared shared = carve<D>();
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
            float negated[P][D];
#pragma unroll
            for (int p = 0; p < P; ++p)
#pragma unroll
                for (int f = 0; f < D; ++f)
                    negated[p][f] = shared.factors[f].w - tile.x[p][f];
            Best best[P];
            filter<D, P, Few>(shared.panel, 1, 0, negated, best);
            bool same = true;
#pragma unroll
            for (int p = 0; p < P; ++p) {
                if (!(best[p].second > best[p].least + margin))
                    best[p].index = -1;
                same = same && best[p].index == tile.last[p];
            }
            if (__all_sync(~0u, same))
                continue;
#pragma unroll
            for (int p = 0; p < P; ++p) {
                const int row = first + p * threads, label = best[p].index;
                const bool changed = row < n && label != tile.last[p];
                if (!__any_sync(~0u, changed))
                    continue;
                if (__all_sync(~0u, changed && label >= 0)) { // as in the first iteration
                    move_row<D>(a.view, cells, a.floats, row, tile.x[p], tile.last[p], label, a.last.none());
                    a.last.set(row, label);
                    continue;
                }
                const int place = later.push(changed, Later::entry(row, tile.last[p], label));
                if (carries<D> && changed)
#pragma unroll
                    for (int f = 0; f < D; ++f)
                        carried[place].x[f] = tile.x[p][f];
            }
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

template <int D, int Few>
void launch_padded(const Stage<float> &stage, const MoveArguments &a)
{
    constexpr int P = rows_per_thread<D>;
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
