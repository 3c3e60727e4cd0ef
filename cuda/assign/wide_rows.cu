// wide_rows.cu - labels of float32 rows of many features under few centroids: as fast as the rows come from memory, and
// without those whose label cannot have changed.
//
// To use: more than 16 features, up to 16 centroids. The first assignment prepares nothing: it costs no more than a
// later one.
// Layout: a warp takes 32 rows, and of those that are open four at a time, in registers: a lane has four features of
// every 128, and the partial distances of its features. The centroids lie in shared memory in that order, so that a
// lane reads its four features of one at once. Two exchanges give eight lanes each the distances of one row.
// Threads: a block fills its memory; from there on warps share nothing.
//
// The filter. A float32 distance is a sum of squares of differences, none negative. A difference is rounded once, which
// counts twice in its square; a lane adds 4 s terms, s steps of 128 features, and five exchanges follow: what comes out
// is within e = (4 s + 7) u (1 + 2^-8) of itself, u = 2^-24, and 2^-130 for subnormal squares. Let w = (4 s + 16) u,
// and of the two least distances p <= q
//   farther = q (1 - w) - 2^-120,   nearer = p (1 + w) + 2^-120.
// If farther > nearer + 2^-120, the centroid of p is the nearest by the contract: w - e covers the roundings of both
// sides and the contract's own distance, which is off by less than 2^-39 of itself. A q beyond 2^127 counts as that.
// Rows that are left open are settled by the contract's distance.
//
// Rows that rest. Where the rows come again, each keeps its label and a gap: no other centroid is less than that
// farther from it than its own (Hamerly 2010). It is sqrt(farther) - sqrt(nearer), rounded down. From one assignment to
// the next a gap loses the way of the row's own centroid and the farthest way of the others, rounded up. A row whose
// gap stays positive is not read: what w exceeds e by is 2^-24 of both roots and more, and the distance to its own
// centroid stays below their sum, so that the contract's roundings (2^-39) are still covered.
#include "assign/wide_rows.hpp"

#include "device/best.cuh"
#include "device/exact.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int width = 128; // features of a step
constexpr int rows_at_once = 4;

// What is kept of resident rows.
struct Kept {
    float *gaps;          // rows
    std::uint8_t *labels; // rows
    float *last;          // k x d: the centroids of the last assignment
    float *way;           // k: how far they went since, rounded up

    __host__ __device__ Kept from(std::int64_t row) const { return {gaps + row, labels + row, last, way}; }
};

struct WideArguments {
    View<float> view;
    const Control *control;
    std::int32_t *labels;
    Kept kept;
    bool keeps;
};

// A block a centroid: its way, and the centroid for the next time.
__global__ void __launch_bounds__(threads) way_kernel(View<float> view, const Control *control, Kept kept)
{
    if (block_stopped(control))
        return;
    const int self = static_cast<int>(threadIdx.x);
    const std::int64_t from = std::int64_t{blockIdx.x} * view.d;
    double sum = 0.0;
    for (int f = self; f < view.d; f += threads) {
        const float now = view.centroids[from + f];
        add_term(sum, now, kept.last[from + f]);
        kept.last[from + f] = now;
    }
    sum = sum_in_block<threads>(sum);
    if (self == 0)
        kept.way[blockIdx.x] = __double2float_ru(::sqrt(sum) * (1.0 + 0x1p-30));
}

// What a gap loses, by the label.
__device__ inline float loss_of(const float *way, int k, int label)
{
    float others = 0.0f;
    for (int j = 0; j < k; ++j)
        if (j != label)
            others = fmaxf(others, way[j]);
    return __fadd_ru(way[label], others);
}

// The feature that lane `lane` has as its q-th of a step. Fours: rows are aligned for reads of four.
template <bool Fours>
__device__ inline int feature_of(int lane, int q)
{
    return Fours ? lane * 4 + q : q * 32 + lane;
}

template <int K, bool Fours>
__device__ inline void fill_panel(const View<float> &view, float *panel)
{
    const int steps = (view.d + width - 1) / width;
    for (int i = static_cast<int>(threadIdx.x); i < steps * K * width; i += threads) {
        const int at = i % width, j = i / width % K, f = i / width / K * width + feature_of<Fours>(at / 4, at % 4);
        panel[i] = j < view.k && f < view.d ? view.centroids[j * view.d + f] : 0.0f;
    }
}

// Four features of a row; zeros beyond the last.
template <bool Fours>
__device__ inline float4 load_step(const float *row, int first, int d)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    if constexpr (Fours) {
        const int f = first + lane * 4;
        return f < d ? __ldcs(reinterpret_cast<const float4 *>(row + f)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    } else {
        float x[4];
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const int f = first + feature_of<false>(lane, q);
            x[q] = f < d ? __ldcs(row + f) : 0.0f;
        }
        return make_float4(x[0], x[1], x[2], x[3]);
    }
}

__device__ inline void add_square(float &sum, float x, float c)
{
    const float difference = x - c;
    sum = fmaf(difference, difference, sum);
}

// The distances of four rows; those of row i to the eight lanes from 8 i on.
template <int K, bool Fours>
__device__ inline void measure(const float *const (&rows)[rows_at_once], const float *panel, int d,
                               float (&distance)[K])
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const float4 *centroids = reinterpret_cast<const float4 *>(panel) + lane;
    float sum[rows_at_once][K] = {};
    float4 next[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i)
        next[i] = load_step<Fours>(rows[i], 0, d);
    for (int first = 0; first < d; first += width, centroids += K * 32) {
        float4 x[rows_at_once];
#pragma unroll
        for (int i = 0; i < rows_at_once; ++i) {
            x[i] = next[i];
            if (first + width < d)
                next[i] = load_step<Fours>(rows[i], first + width, d);
        }
#pragma unroll
        for (int j = 0; j < K; ++j) {
            const float4 c = centroids[j * 32];
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i) {
                add_square(sum[i][j], x[i].x, c.x);
                add_square(sum[i][j], x[i].y, c.y);
                add_square(sum[i][j], x[i].z, c.z);
                add_square(sum[i][j], x[i].w, c.w);
            }
        }
    }
    const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
#pragma unroll
    for (int j = 0; j < K; ++j) {
        float two[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            two[i] = (upper ? sum[i + 2][j] : sum[i][j]) + __shfl_xor_sync(~0u, upper ? sum[i][j] : sum[i + 2][j], 16);
        float one = (odd ? two[1] : two[0]) + __shfl_xor_sync(~0u, odd ? two[0] : two[1], 8);
#pragma unroll
        for (int offset = 4; offset > 0; offset >>= 1)
            one += __shfl_xor_sync(~0u, one, offset);
        distance[j] = one;
    }
}

// What the filter says of a row.
struct Verdict {
    int label;
    float gap; // 0: the row is open
};

template <int K>
__device__ inline Verdict judge(const float (&distance)[K], int k, float widening)
{
    Best best = Best::none();
#pragma unroll
    for (int j = 0; j < K; ++j)
        if (j < k)
            best.take(distance[j], j);
    const float farther = fminf(best.second, 0x1p127f) * (1.0f - widening) - 0x1p-120f;
    const float nearer = fmaf(best.least, widening, best.least) + 0x1p-120f;
    if (!(farther > nearer + 0x1p-120f)) // infinite, too
        return {best.index, 0.0f};
    return {best.index, __fsub_rd(__fsqrt_rd(farther), __fsqrt_ru(nearer))};
}

// Up to four of the open rows among the 32 from `first` on; takes them from `open`.
template <int K, bool Fours>
__device__ inline void settle_four(const WideArguments &a, const float *panel, float widening, std::int64_t first,
                                   unsigned &open)
{
    const int lane = static_cast<int>(threadIdx.x & 31), count = min(__popc(open), rows_at_once);
    std::int64_t row[rows_at_once];
    const float *values[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
        row[i] = open != 0 ? first + __ffs(static_cast<int>(open)) - 1 : row[i == 0 ? 0 : i - 1];
        values[i] = a.view.values + row[i] * a.view.d;
        open &= open - 1;
    }
    float distance[K];
    measure<K, Fours>(values, panel, a.view.d, distance);
    Verdict verdict = judge(distance, a.view.k, widening);
    const std::int64_t mine = lane < 16 ? (lane < 8 ? row[0] : row[1]) : (lane < 24 ? row[2] : row[3]);
    unsigned left = __ballot_sync(~0u, lane % 8 == 0 && lane / 8 < count && !(verdict.gap > 0.0f));
    for (; left != 0; left &= left - 1) {
        const int from = __ffs(static_cast<int>(left)) - 1;
        const std::int64_t open_row = __shfl_sync(~0u, mine, from);
        const Nearest nearest =
            settle_by_warp(a.view.values + open_row * a.view.d, a.view.centroids, a.view.k, a.view.d);
        if (lane == from)
            verdict.label = nearest.label;
    }
    if (lane % 8 == 0 && lane / 8 < count) {
        a.labels[mine] = verdict.label;
        if (a.keeps) {
            a.kept.labels[mine] = static_cast<std::uint8_t>(verdict.label);
            a.kept.gaps[mine] = verdict.gap;
        }
    }
}

template <int K, bool Fours>
__global__ void __launch_bounds__(threads, Fours || K <= 8 ? 2 : 1) wide_kernel(WideArguments a)
{
    extern __shared__ float4 memory[];
    __shared__ float loss[K];
    if (block_stopped(a.control))
        return;
    float *panel = reinterpret_cast<float *>(memory);
    fill_panel<K, Fours>(a.view, panel);
    if (a.keeps && static_cast<int>(threadIdx.x) < a.view.k)
        loss[threadIdx.x] = loss_of(a.kept.way, a.view.k, static_cast<int>(threadIdx.x));
    __syncthreads();
    const float widening = static_cast<float>((a.view.d + width - 1) / width * 4 + 16) * 0x1p-24f;
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t first = std::int64_t{blockIdx.x} * threads + static_cast<int>(threadIdx.x) - lane;
         first < a.view.n; first += stride) {
        if (__any_sync(~0u, stopped(a.control)))
            return;
        const std::int64_t row = first + lane;
        bool rests = false;
        if (a.keeps && row < a.view.n) {
            const int label = a.kept.labels[row];
            const float gap = __fsub_rd(a.kept.gaps[row], loss[label]);
            rests = gap > 0.0f;
            if (rests) {
                a.kept.gaps[row] = gap;
                a.labels[row] = label;
            }
        }
        unsigned open = __ballot_sync(~0u, row < a.view.n && !rests);
        while (open != 0)
            settle_four<K, Fours>(a, panel, widening, first, open);
    }
}

template <int K, bool Fours>
void launch(const Stage<float> &stage, const WideArguments &a)
{
    const auto kernel = wide_kernel<K, Fours>;
    const auto bytes = static_cast<std::size_t>(wide_bytes(a.view.d, a.view.k));
    const int most = resident_blocks(stage.context, kernel, threads, bytes);
    in_launches(a.view, 4e12, [&](std::int64_t first, std::int64_t rows) {
        WideArguments part = a;
        part.view = slice(a.view, first, rows);
        part.labels = a.labels + first;
        part.kept = a.kept.from(first);
        enqueue(kernel, blocks_for(rows, threads, most), threads, bytes, stage.stream, part);
    });
}

template <bool Fours>
void launch_k(const Stage<float> &stage, const WideArguments &a)
{
    with_size<2, 4, 6, 8, 10, 12, 14, wide_k>(
        a.view.k, [&](auto centroids) { launch<decltype(centroids)::value, Fours>(stage, a); });
}

// What is kept of these rows; made, with all rows open, where there is nothing yet. Nothing where there is no room.
bool find_kept(const Stage<float> &stage, const View<float> &view, Kept &kept)
{
    PreparedRows *prepared = stage.prepared;
    if (prepared == nullptr || prepared->refused)
        return false;
    const auto n = static_cast<std::size_t>(view.n), k = static_cast<std::size_t>(view.k);
    const std::size_t values = k * static_cast<std::size_t>(view.d);
    PreparedRows::Part *part = prepared->find(view.values, view.n, view.k);
    if (part == nullptr) {
        part = prepared->add(stage.context, view.values, view.n, view.k, (n + values + k) * sizeof(float) + n);
        if (part == nullptr)
            return false;
        part->memory.fill_zero(stage.stream);
    }
    float *floats = reinterpret_cast<float *>(part->memory.get());
    kept = {floats, reinterpret_cast<std::uint8_t *>(floats + n + values + k), floats + n, floats + n + values};
    return true;
}

} // namespace

void assign_wide(const Stage<float> &stage, const View<float> &view, std::int32_t *labels)
{
    WideArguments a = {view, stage.control, labels, {}, false};
    a.keeps = find_kept(stage, view, a.kept);
    if (a.keeps)
        enqueue(way_kernel, view.k, threads, 0, stage.stream, view, stage.control, a.kept);
    if (view.d % 4 == 0 && reinterpret_cast<std::uintptr_t>(view.values) % 16 == 0)
        launch_k<true>(stage, a);
    else
        launch_k<false>(stage, a);
}

} // namespace pgkm::cuda
