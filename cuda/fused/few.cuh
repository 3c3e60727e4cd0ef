// few.cuh - rows of few features and few clusters: what the kernels of few.cu and few_resting.cu do
// with the rows that they have read.
#pragma once

#include "plan/choose.hpp"
#include "device/exact.cuh"
#include "fused/moves.hpp"
#include "fused/register.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int replicas = 32;
// Entries of a warp's queue: those of a tile's P rows per lane beside 31 that wait.
template <int D>
constexpr int rows_per_thread = D <= 4 ? 4 : D <= 8 ? 2 : 1;
template <int D>
constexpr int waiting = 32 * (rows_per_thread<D> + 1);
template <int D>
constexpr int later_words = warps * waiting<D> * 2;

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
constexpr int carried_words = carries<D> ? warps * waiting<D> * D : 0;

// offset: in words, a multiple of four.
template <int D>
__device__ Shared carve(int offset)
{
    std::int32_t *memory = shared_words(offset);
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
    move_row<D>(a.view, cells, a.floats, values.x, entry.from, to, a.last.none());
    a.last.set(entry.row, to);
}

// A thread's rows of one tile and their last labels.
template <int D, int P>
struct Tile {
    float x[P][D];
    int   last[P];
};

// Labels of a tile's rows; those that changed are moved, at once or later. row: where the caller's lanes
// have none, n or more.
template <int D, int P, int Few>
__device__ __forceinline__ void take_tile(const MoveArguments &a, const Shared &shared, const MoveCells &cells, Later &later,
                                          Values<D> *carried, float margin, const Tile<D, P> &tile, const int (&row)[P])
{
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
        return;
    const int n = static_cast<int>(a.view.n);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const int label = best[p].index;
        const bool changed = row[p] < n && label != tile.last[p];
        if (!__any_sync(~0u, changed))
            continue;
        if (__all_sync(~0u, changed && label >= 0)) { // as in the first iteration
            move_row<D>(a.view, cells, a.floats, tile.x[p], tile.last[p], label, a.last.none());
            a.last.set(row[p], label);
            continue;
        }
        const int place = later.push(changed, Later::entry(row[p], tile.last[p], label));
        if (carries<D> && changed)
#pragma unroll
            for (int f = 0; f < D; ++f)
                carried[place].x[f] = tile.x[p][f];
    }
}

// Calls launch(std::integral_constant of D, of Few, of Padded): a shape's padded features, most
// clusters, and whether its features are fewer.
template <typename Launch>
void for_few(const View<float> &view, Launch &&launch)
{
    const auto with = [&](auto size) {
        constexpr int D = decltype(size)::value;
        const auto padded = [&](auto few) {
            if constexpr (D > 4)
                if (view.d < D)
                    return launch(size, few, std::true_type());
            launch(size, few, std::false_type());
        };
        if (view.k <= 4)
            padded(std::integral_constant<int, 4>());
        else
            padded(std::integral_constant<int, panel_group>());
    };
    switch (register_size(view.d)) {
    case 1: return with(std::integral_constant<int, 1>());
    case 2: return with(std::integral_constant<int, 2>());
    case 3: return with(std::integral_constant<int, 3>());
    case 4: return with(std::integral_constant<int, 4>());
    case 6: return with(std::integral_constant<int, 6>());
    case 8: return with(std::integral_constant<int, 8>());
    case 12: return with(std::integral_constant<int, 12>());
    default: return with(std::integral_constant<int, 16>());
    }
}

} // namespace
} // namespace pgkm::cuda
