// few.cu (fused) - an iteration over float32 rows of up to 16 features, sums that follow the rows (moves.cuh); or the
// rows' labels alone (Aggarwal 2013, section 4.1; Li et al. 2010, Algorithm 3).
//
// A thread holds P rows in registers, `threads` apart. The centroids lie in shared memory, octet by octet, so that a
// value that is read there serves P rows. The filter and its margin: few.cuh. Rows that the filter leaves open, and
// rows that moved, wait in a queue of their warp until there is one for each lane. Warps meet only at the end, where
// the block's sums leave. Reads each row once and its last label.
// To use: d <= 16, as many clusters as shared memory holds beside their sums.
#include "fused/few.cuh"

#include "fused/moves.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr std::size_t sums_bytes = 24576; // most of a block's sums in more than one copy

// K, the most clusters of a kernel: 4 or 8, which is one octet, or any_k.
constexpr int any_k = 0;

template <int D, int K>
constexpr int rows_per_thread = D <= 4 || K == any_k ? 4
                                : D <= 8             ? 2
                                                     : 1;
// Whether the rows to come are loaded while rows are compared, where registers hold both.
template <int D, int K>
constexpr bool loads_ahead = D <= 4 || K != any_k;
// Entries of a warp's queue: those of a tile's P rows per lane beside 31 that wait.
template <int D, int K>
constexpr int waiting = 32 * (rows_per_thread<D, K> + 1);
// A row's values wait with it where they are few: its line would have left the first-level cache.
template <int D>
constexpr bool carries = D <= 4;

template <int D>
struct alignas(D == 2 || D == 4 ? D * 4 : 4) Values {
    float x[D];
};

// The block's shared memory.
template <int D, int K>
struct Shared {
    float *shift;        // D, padded to four
    float *octets;       // each as few.cuh has it
    Later::Entry *later; // of this warp
    Values<D> *carried;  // of this warp's entries
    std::int32_t *counters;

    static constexpr int shift_words = (D + 3) / 4 * 4, octet_words = (D + 1) * octet_size;
    static constexpr int later_words = warps * waiting<D, K> * 2;
    static constexpr int carried_words = carries<D> ? warps * waiting<D, K> * D : 0;
    static_assert((shift_words + later_words + carried_words) * 4 <= few_queue_bytes);

    static __host__ __device__ int octets_of(int k) { return K == any_k ? (k + octet_size - 1) / octet_size : 1; }

    __device__ explicit Shared(int k)
    {
        const int warp = static_cast<int>(threadIdx.x / 32);
        shift = reinterpret_cast<float *>(shared_words(0));
        octets = shift + shift_words;
        float *queues = octets + octets_of(k) * octet_words;
        later = reinterpret_cast<Later::Entry *>(queues) + warp * waiting<D, K>;
        carried = reinterpret_cast<Values<D> *>(queues + later_words) + warp * waiting<D, K>;
        counters = reinterpret_cast<std::int32_t *>(queues + later_words + carried_words);
    }
    static std::size_t bytes(const MoveArguments &a)
    {
        const std::size_t counters = a.labels != nullptr ? 0 : MoveCounters::bytes(a.view.k, a.view.d, a.replicas);
        const int words = shift_words + octets_of(a.view.k) * octet_words + later_words + carried_words;
        return static_cast<std::size_t>(words) * 4 + counters;
    }
};

// The octets of the current centroids; returns the margin that follows from their reach.
template <int D, int K>
__device__ float prepare(const MoveArguments &a, const Shared<D, K> &shared)
{
    __shared__ unsigned radius; // bits of a float
    const int self = static_cast<int>(threadIdx.x), d = a.view.d, k = a.view.k;
    if (self == 0)
        radius = 0;
    if (self < D)
        shared.shift[self] = self < d ? a.shift[self] : 0.0f;
    __syncthreads();
    for (int j = self; j < shared.octets_of(k) * octet_size; j += threads) {
        float *octet = shared.octets + j / octet_size * shared.octet_words + j % octet_size;
        double square = 0.0;
        for (int f = 0; f < D; ++f) {
            const float centred = j < k && f < d ? a.view.centroids[j * d + f] - a.shift[f] : 0.0f;
            square += static_cast<double>(centred) * static_cast<double>(centred);
            octet[f * octet_size] = centred;
        }
        octet[D * octet_size] = j < k ? static_cast<float>(square / 2) : INFINITY;
        atomicMax(&radius, __float_as_uint(__double2float_ru(sqrt(square) * (1.0 + 0x1p-40)))); // NaN is the largest
    }
    __syncthreads();
    return filter_margin(a.reach, __uint_as_float(radius), d);
}

// The label of a row that the filter left open. Float32 sums of squares err less than its products do (best.cuh). What
// they leave open gets the contract's distances to all centroids, as it does at once where these are few.
template <int D, int K>
__device__ __forceinline__ int settled_label(const MoveArguments &a, int row)
{
    const int d = a.view.d, k = a.view.k;
    const float *values = a.view.values + std::int64_t{row} * d;
    if constexpr (K == any_k) {
        float x[D];
#pragma unroll
        for (int f = 0; f < D; ++f)
            x[f] = f < d ? values[f] : 0.0f;
        Best best = Best::none();
#pragma unroll 4
        for (int j = 0; j < k; ++j) {
            float sum = 0.0f;
#pragma unroll
            for (int f = 0; f < D; ++f) {
                const float difference = f < d ? x[f] - __ldg(a.view.centroids + j * d + f) : 0.0f;
                sum = __fmaf_rn(difference, difference, sum);
            }
            best.take(sum, j);
        }
        if (best.is_sole(d))
            return best.index;
    }
    return nearest_by_thread(values, a.view.centroids, k, d).label;
}

// Rows that a warp put off: those without a label are settled, those that moved are moved.
template <int D, int K, bool Labels>
__device__ __forceinline__ void take_later(const MoveArguments &a, const MoveCounters &counters, Later &later,
                                           const Values<D> *carried)
{
    int place;
    const Later::Entry entry = later.pop(place);
    if (entry.row < 0)
        return;
    const int to = entry.to < 0 ? settled_label<D, K>(a, entry.row) : entry.to;
    if constexpr (Labels) {
        a.labels[entry.row] = to;
    } else {
        const int from = a.last.wide ? static_cast<std::uint16_t>(entry.from) : entry.from;
        if (to == from)
            return;
        Values<D> values;
        if constexpr (carries<D>)
            values = carried[place];
        else
            load_any_row<D>(a.view.values, entry.row, a.view.d, values.x);
        move_row<D>(a.view, counters, a.floats, values.x, from, to, a.last.none());
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
template <int D, int K, bool Padded, bool Labels, bool Whole>
__device__ void load_tile(const MoveArguments &a, int first, Tile<D, rows_per_thread<D, K>> &tile)
{
    const int most = static_cast<int>(a.view.n) - 1, start = Whole ? first : min(first, most);
    const int d = Padded ? a.view.d : D;
    const float *values = a.view.values + std::int64_t{start} * d;
#pragma unroll
    for (int p = 0; p < rows_per_thread<D, K>; ++p) {
        const int row = Whole ? p * threads : min(p * threads, most - start);
        load_row<D>(values + row * d, 0, d, tile.x[p]);
        if constexpr (!Labels)
            tile.last[p] =
                K == any_k ? a.last.get(start + row) : (static_cast<const std::uint8_t *>(a.last.values) + start)[row];
    }
}

template <int D, int K, bool Padded, bool Labels>
__device__ void load_next(const MoveArguments &a, int first, Tile<D, rows_per_thread<D, K>> &tile)
{
    if (first + rows_per_thread<D, K> * threads <= static_cast<int>(a.view.n)) // for all but the last tile's threads
        load_tile<D, K, Padded, Labels, true>(a, first, tile);
    else
        load_tile<D, K, Padded, Labels, false>(a, first, tile);
}

// The best of all centroids for a tile's rows; -1 where the margin leaves more than one.
template <int D, int K, int P>
__device__ __forceinline__ void filter_tile(const Shared<D, K> &shared, int k, float margin, const Tile<D, P> &tile,
                                            Best (&best)[P])
{
    float negated[P][D];
    const float zero = unknown_zero(k);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        best[p] = Best::none();
#pragma unroll
        for (int f = 0; f < D; ++f)
            negated[p][f] = shared.shift[f] - tile.x[p][f];
    }
    if constexpr (K == any_k && D <= 4)
        filter_by_least<D, P>(shared.octets, shared.octets_of(k), negated, zero, best);
    else if constexpr (K == any_k)
        filter_each<D, P>(shared.octets, shared.octets_of(k), negated, zero, best);
    else
        filter<D, P, K>(shared.octets, 0, negated, zero, best);
#pragma unroll
    for (int p = 0; p < P; ++p)
        if (!(best[p].second > best[p].least + margin))
            best[p].index = -1;
}

// Labels of a tile's rows; those that changed are moved, at once or later.
template <int D, int K, bool Labels, int P>
__device__ __forceinline__ void take_tile(const MoveArguments &a, const Shared<D, K> &shared,
                                          const MoveCounters &counters, Later &later, float margin,
                                          const Tile<D, P> &tile, int first)
{
    Best best[P];
    filter_tile<D, K>(shared, a.view.k, margin, tile, best);
    bool same = true;
#pragma unroll
    for (int p = 0; p < P; ++p)
        if constexpr (!Labels)
            same = same && best[p].index == tile.last[p];
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
            if (K != any_k && __all_sync(~0u, changed && label >= 0)) { // as in the first iteration
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

// Padded: rows have fewer features than D. Labels: those alone.
template <int D, int K, bool Padded, bool Labels>
__global__ void __launch_bounds__(threads, 2) few_kernel(const __grid_constant__ MoveArguments a)
{
    if (block_stopped(a.update.control))
        return;
    constexpr int P = rows_per_thread<D, K>;
    const Shared<D, K> shared(a.view.k);
    const MoveCounters counters = {static_cast<int>(shared.counters - shared_words(0)), a.view.k, a.view.d, a.replicas};
    if constexpr (!Labels) {
        counters.clear();
        counters.prepare_scales(a.view, a.floats);
    }
    const float margin = prepare(a, shared);
    const int n = static_cast<int>(a.view.n); // a launch has fewer than 2^31 rows
    Later later(shared.later);
    const int step = static_cast<int>(gridDim.x) * threads * P, self = static_cast<int>(threadIdx.x);
    int first = static_cast<int>(blockIdx.x) * threads * P + self;
    Tile<D, P> next;
    if constexpr (loads_ahead<D, K>)
        load_next<D, K, Padded, Labels>(a, first, next);
    for (bool end = first - self >= n;; first += step, end = first - self >= n) {
        if (!end) {
            if constexpr (!loads_ahead<D, K>)
                load_next<D, K, Padded, Labels>(a, first, next);
            const Tile<D, P> tile = next;
            if constexpr (loads_ahead<D, K>)
                load_next<D, K, Padded, Labels>(a, first + step, next);
            take_tile<D, K, Labels>(a, shared, counters, later, margin, tile, first);
        }
        while (later.full() || (end && !later.empty()))
            take_later<D, K, Labels>(a, counters, later, shared.carried);
        if (end)
            break;
    }
    if constexpr (!Labels)
        counters.publish(a.update.sums);
}

template <int D, int K, bool Labels>
void launch(const Stage<float> &stage, const MoveArguments &a)
{
    const auto with = [&](auto padded) {
        launch_moves(stage, few_kernel<D, K, decltype(padded)::value, Labels>, threads, Shared<D, K>::bytes(a),
                     threads * rows_per_thread<D, K>, a);
    };
    if (D > 4 && a.view.d < D)
        with(std::bool_constant<(D > 4)>());
    else
        with(std::false_type());
}

// Copies of a block's sums: its threads add to different ones. Labels alone: as few rows a launch as with one.
int replicas_for(const MoveArguments &a)
{
    int replicas = a.view.k <= octet_size || a.labels == nullptr ? 32 : 1;
    while (a.view.k > octet_size && replicas > 1 && MoveCounters::bytes(a.view.k, a.view.d, replicas) > sums_bytes)
        replicas /= 2;
    return replicas;
}

template <bool Labels>
void launch_for(const Stage<float> &stage, MoveArguments a)
{
    a.replicas = replicas_for(a);
    with_size<1, 2, 3, 4, 6, 8, 12, register_d>(a.view.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        if (a.view.k <= 4)
            launch<D, 4, Labels>(stage, a);
        else if (a.view.k <= octet_size)
            launch<D, octet_size, Labels>(stage, a);
        else
            launch<D, any_k, Labels>(stage, a);
    });
}

} // namespace

void iterate_few(const Stage<float> &stage, const MoveArguments &arguments)
{
    launch_for<false>(stage, arguments);
    end_iteration(stage, arguments);
}

void label_few(const Stage<float> &stage, const MoveArguments &arguments)
{
    launch_for<true>(stage, arguments);
}

} // namespace pgkm::cuda
