// few.cu (fused) - an iteration over float32 rows of up to 16 features with up to 8 clusters, sums that follow the rows
// (moves.cuh); or the rows' labels alone (Aggarwal 2013, section 4.1; Li et al. 2010, Algorithm 3).
//
// A thread holds P rows in registers, `threads` apart, and loads the next ones while it works. The octet of centroids
// lies in shared memory. The filter and its margin: few.cuh. Rows that the filter leaves open, and rows that moved,
// wait in a queue of their warp until there is one for each lane. Warps meet only at the end, where the block's sums
// leave and the last block updates the centroids (finish.cuh). Reads each row once and one byte of its last label. For
// so few clusters the products of the tensor cores (slots.cu) would be mostly padding.
#include "fused/few.cuh"

#include "fused/moves.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int replicas = 32;

template <int D>
constexpr int rows_per_thread = D <= 4   ? 4
                                : D <= 8 ? 2
                                         : 1;
// Entries of a warp's queue: those of a tile's P rows per lane beside 31 that wait.
template <int D>
constexpr int waiting = 32 * (rows_per_thread<D> + 1);
template <int D>
constexpr int later_words = warps *waiting<D> * 2;
// A row's values wait with it where they are few: its line would have left the first-level cache.
template <int D>
constexpr bool carries = D <= 4;
template <int D>
constexpr int carried_words = carries<D> ? warps *waiting<D> *D : 0;

template <int D>
struct alignas(D == 2 || D == 4 ? D * 4 : 4) Values {
    float x[D];
};

// The block's shared memory.
template <int D>
struct Shared {
    float *shift;        // D, padded to four
    float *octet;        // as few.cuh has it
    float *radius;       // of the octet's centroids
    Later::Entry *later; // of this warp
    Values<D> *carried;  // of this warp's entries
    std::int32_t *counters;

    static constexpr int shift_words = (D + 3) / 4 * 4, octet_words = (D + 2) * octet_size;

    __device__ Shared()
    {
        const int warp = static_cast<int>(threadIdx.x / 32);
        shift = reinterpret_cast<float *>(shared_words(0));
        octet = shift + shift_words;
        radius = octet + (D + 1) * octet_size;
        later = reinterpret_cast<Later::Entry *>(octet + octet_words) + warp * waiting<D>;
        float *all_carried = octet + octet_words + later_words<D>;
        carried = reinterpret_cast<Values<D> *>(all_carried) + warp * waiting<D>;
        counters = reinterpret_cast<std::int32_t *>(all_carried + carried_words<D>);
    }
    static std::size_t bytes(const MoveArguments &a)
    {
        const std::size_t counters = a.labels != nullptr ? 0 : MoveCounters::bytes(a.view.k, a.view.d, replicas);
        return (shift_words + octet_words + later_words<D> + carried_words<D>)*4 + counters;
    }
};

// The octet of the current centroids; returns the margin that follows from their reach.
template <int D>
__device__ float prepare(const MoveArguments &a, const Shared<D> &shared)
{
    const int self = static_cast<int>(threadIdx.x), d = a.view.d;
    if (self < D)
        shared.shift[self] = self < d ? a.shift[self] : 0.0f;
    if (self < octet_size) {
        double square = 0.0;
        for (int f = 0; f < D; ++f) {
            const float centred = self < a.view.k && f < d ? a.view.centroids[self * d + f] - a.shift[f] : 0.0f;
            square += static_cast<double>(centred) * static_cast<double>(centred);
            shared.octet[f * octet_size + self] = centred;
        }
        shared.octet[D * octet_size + self] = self < a.view.k ? static_cast<float>(square / 2) : INFINITY;
        shared.radius[self] = __double2float_ru(sqrt(square) * (1.0 + 0x1p-40));
    }
    __syncthreads();
    float radius = 0.0f;
    for (int j = 0; j < octet_size; ++j)
        radius = fmaxf(radius, shared.radius[j]);
    return filter_margin(a.reach, radius, d);
}

// Rows that a warp put off: those without a label are settled, those that moved are moved.
template <int D, bool Labels>
__device__ __forceinline__ void take_later(const MoveArguments &a, const MoveCounters &counters, Later &later,
                                           const Values<D> *carried)
{
    int place;
    const Later::Entry entry = later.pop(place);
    if (entry.row < 0)
        return;
    int to = entry.to;
    if (to < 0)
        to = nearest_by_thread(a.view.values + std::int64_t{entry.row} * a.view.d, a.view.centroids, a.view.k, a.view.d)
                 .label;
    if constexpr (Labels) {
        a.labels[entry.row] = to;
    } else {
        if (to == entry.from)
            return;
        Values<D> values;
        if constexpr (carries<D>)
            values = carried[place];
        else
            load_any_row<D>(a.view.values, entry.row, a.view.d, values.x);
        move_row<D>(a.view, counters, a.floats, values.x, entry.from, to, a.last.none());
        a.last.set(entry.row, to);
    }
}

// A thread's rows of one tile and their last labels.
template <int D, int P>
struct Tile {
    float x[P][D];
    int last[P];
};

// first: the thread's first row, within the launch. Whole: all of the tile's rows are there.
template <int D, int P, bool Padded, bool Labels, bool Whole>
__device__ void load_tile(const MoveArguments &a, int first, Tile<D, P> &tile)
{
    const int most = static_cast<int>(a.view.n) - 1, start = Whole ? first : min(first, most);
    const int d = Padded ? a.view.d : D;
    const float *values = a.view.values + std::int64_t{start} * d;
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const int row = Whole ? p * threads : min(p * threads, most - start);
        load_row<D>(values + row * d, 0, d, tile.x[p]);
        if constexpr (!Labels)
            tile.last[p] = (static_cast<const std::uint8_t *>(a.last.values) + start)[row];
    }
}

template <int D, int P, bool Padded, bool Labels>
__device__ void load_next(const MoveArguments &a, int first, Tile<D, P> &tile)
{
    if (first + P * threads <= static_cast<int>(a.view.n)) // the same for all but the last tile's threads
        load_tile<D, P, Padded, Labels, true>(a, first, tile);
    else
        load_tile<D, P, Padded, Labels, false>(a, first, tile);
}

// Labels of a tile's rows; those that changed are moved, at once or later.
template <int D, int P, int K, bool Labels>
__device__ __forceinline__ void take_tile(const MoveArguments &a, const Shared<D> &shared, const MoveCounters &counters,
                                          Later &later, float margin, const Tile<D, P> &tile, int first)
{
    float negated[P][D];
#pragma unroll
    for (int p = 0; p < P; ++p)
#pragma unroll
        for (int f = 0; f < D; ++f)
            negated[p][f] = shared.shift[f] - tile.x[p][f];
    Best best[P];
    filter<D, P, K>(shared.octet, negated, best);
    bool same = true;
#pragma unroll
    for (int p = 0; p < P; ++p) {
        if (!(best[p].second > best[p].least + margin))
            best[p].index = -1;
        if constexpr (!Labels)
            same = same && best[p].index == tile.last[p];
    }
    if (!Labels && __all_sync(~0u, same))
        return;
    const int n = static_cast<int>(a.view.n);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const int label = best[p].index, row = first + p * threads;
        if constexpr (Labels) {
            if (row < n && label >= 0)
                a.labels[row] = label;
            if (const bool open = row < n && label < 0; __any_sync(~0u, open))
                later.push(open, Later::entry(row, 0, label));
        } else {
            const bool changed = row < n && label != tile.last[p];
            if (!__any_sync(~0u, changed))
                continue;
            if (__all_sync(~0u, changed && label >= 0)) { // as in the first iteration
                move_row<D>(a.view, counters, a.floats, tile.x[p], tile.last[p], label, a.last.none());
                a.last.set(row, label);
                continue;
            }
            const int place = later.push(changed, Later::entry(row, tile.last[p], label));
            if (carries<D> && changed)
#pragma unroll
                for (int f = 0; f < D; ++f)
                    shared.carried[place].x[f] = tile.x[p][f];
        }
    }
}

// K: most clusters. Padded: rows have fewer features than D. Labels: those alone.
template <int D, int P, int K, bool Padded, bool Labels>
__global__ void __launch_bounds__(threads, 2) few_kernel(const __grid_constant__ MoveArguments a)
{
    if (block_stopped(a.update))
        return;
    const Shared<D> shared;
    const MoveCounters counters = {static_cast<int>(shared.counters - shared_words(0)), a.view.k, a.view.d, replicas};
    if constexpr (!Labels) {
        counters.clear();
        counters.prepare_scales(a.view, a.floats);
    }
    const float margin = prepare<D>(a, shared);
    const int n = static_cast<int>(a.view.n); // a launch has fewer than 2^31 rows
    Later later(shared.later);
    const int step = static_cast<int>(gridDim.x) * threads * P, self = static_cast<int>(threadIdx.x);
    int first = static_cast<int>(blockIdx.x) * threads * P + self;
    Tile<D, P> next;
    load_next<D, P, Padded, Labels>(a, first, next);
    for (bool end = first - self >= n;; first += step, end = first - self >= n) {
        if (!end) {
            const Tile<D, P> tile = next;
            load_next<D, P, Padded, Labels>(a, first + step, next);
            take_tile<D, P, K, Labels>(a, shared, counters, later, margin, tile, first);
        }
        while (later.full() || (end && !later.empty()))
            take_later<D, Labels>(a, counters, later, shared.carried);
        if (end)
            break;
    }
    if constexpr (!Labels)
        end_iteration(a, counters);
}

template <int D, int K, bool Padded, bool Labels>
void launch(const Stage<float> &stage, const MoveArguments &a)
{
    constexpr int P = rows_per_thread<D>;
    launch_moves(stage, few_kernel<D, P, K, Padded, Labels>, threads, Shared<D>::bytes(a), threads * P, a);
}

template <bool Labels>
void launch_for(const Stage<float> &stage, MoveArguments a)
{
    a.replicas = replicas;
    with_size<1, 2, 3, 4, 6, 8, 12, register_d>(a.view.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        const bool padded = D > 4 && a.view.d < D;
        if (a.view.k <= 4)
            padded ? launch<D, 4, (D > 4), Labels>(stage, a) : launch<D, 4, false, Labels>(stage, a);
        else
            padded ? launch<D, octet_size, (D > 4), Labels>(stage, a) : launch<D, octet_size, false, Labels>(stage, a);
    });
}

} // namespace

void iterate_few(const Stage<float> &stage, const MoveArguments &arguments)
{
    launch_for<false>(stage, arguments);
}

void label_few(const Stage<float> &stage, const MoveArguments &arguments)
{
    launch_for<true>(stage, arguments);
}

} // namespace pgkm::cuda
