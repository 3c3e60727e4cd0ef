// tiled.cu - distances as a tiled matrix "product" in shared memory (Li et al. 2010,
// Algorithm 4): a block holds 128 rows against 128 centroids and walks d in steps of 16; each
// thread keeps 8 x 8 sums of (x - c)^2 in registers, so that a value read from shared memory
// serves eight terms.
//
// float64: the sums run over the features in order with one fma each, so they are the
// contract's distances themselves and nothing is left to settle.
//
// float32 is a filter. Differences are taken before squaring, so nothing cancels and no shift
// is needed. With u = 2^-24, a float32 sum of d terms fma(t, t, acc), t = fl(x - c), is
// D (1 + h) + a, |h| <= (1 + u)^(d + 2) - 1 <= 1.01 (d + 2) u for d <= 2^17 (all terms are
// positive; each is rounded twice by t and at most d times in the sum), |a| <= d 2^-149 for
// what underflows. Hence, if j is a nearest centroid and m the one with the least computed
// sum s_m, s_j <= s_m (1 + g) + 2 d 2^-149 with g = (1 + h) / (1 - h) - 1 <= 2.1 (d + 3) u;
// the +3 also covers the contract's own rounding in float64. A row with one centroid below
// that threshold is done; the others, and those with an infinite s_m, are settled exactly.
//
// To use: d above the register kernels' where the tensor cores are not to be used or d passes
// their shared memory; float64 data of any d.
#include "tiled_settle.cuh"

namespace pgkm::cuda {
namespace {

constexpr int tile = 128;   // rows and centroids of a block's tile
constexpr int step = 16;    // features per step
constexpr int threads = 256; // 16 x 16, each 8 x 8 sums

// Where a thread's eight rows (or centroids) lie: two runs of four, so that a warp's loads of
// four floats are free of bank conflicts.
__device__ inline int member(int thread, int i) { return thread * 4 + (i & 3) + (i >> 2) * (tile / 2); }

template <typename T>
struct TileBuffer {
    // One column of padding: the transposing stores of a warp hit different banks.
    T rows[step][tile + 4];
    T centroids[step][tile + 4];
};

// Copies features [f0, f0 + step) of 128 vectors from `first` on, transposed; zeros beyond.
template <typename T>
__device__ inline void load_step(T (&to)[step][tile + 4], const T *from, std::int64_t first, std::int64_t count, int d,
                                 int f0)
{
    const int f = static_cast<int>(threadIdx.x % step);
    for (int i = static_cast<int>(threadIdx.x / step); i < tile; i += threads / step) {
        const std::int64_t vector = first + i;
        to[f][i] = vector < count && f0 + f < d ? from[vector * d + f0 + f] : T(0);
    }
}

// One thread's 8 x 8 sums over all features of the tile at (row0, c0).
template <typename T>
__device__ inline void tile_sums(const View<T> &view, std::int64_t row0, int c0, TileBuffer<T> &buffer, T (&sums)[8][8])
{
    const int tx = static_cast<int>(threadIdx.x % 16), ty = static_cast<int>(threadIdx.x / 16);
    for (int f0 = 0; f0 < view.d; f0 += step) {
        __syncthreads();
        load_step(buffer.rows, view.values, row0, view.n, view.d, f0);
        load_step(buffer.centroids, view.centroids, c0, view.k, view.d, f0);
        __syncthreads();
        // Padded features are zero in both: they add exactly nothing.
#pragma unroll 4
        for (int f = 0; f < step; ++f) {
            T x[8], c[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                x[i] = buffer.rows[f][member(ty, i)];
                c[i] = buffer.centroids[f][member(tx, i)];
            }
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const T difference = x[i] - c[j];
                    sums[i][j] = fma(difference, difference, sums[i][j]);
                }
        }
    }
}

// The two least sums of a row and where the least was, lowest index first.
template <typename T>
struct Leaders {
    T            best;
    T            second;
    std::int32_t label;

    __device__ void add(T value, std::int32_t index)
    {
        const bool better = value < best;
        second = better ? best : (value < second ? value : second);
        best = better ? value : best;
        label = better ? index : label;
    }
    __device__ void merge(T other_best, T other_second, std::int32_t other_label)
    {
        const bool wins = other_best < best || (other_best == best && other_label < label);
        const T loser = wins ? best : other_best;
        second = min(min(second, other_second), loser);
        best = wins ? other_best : best;
        label = wins ? other_label : label;
    }
};

template <typename T>
__device__ inline void merge_over_lanes(Leaders<T> &mine)
{
    for (int offset = 8; offset > 0; offset >>= 1)
        mine.merge(__shfl_xor_sync(~0u, mine.best, offset), __shfl_xor_sync(~0u, mine.second, offset),
                   __shfl_xor_sync(~0u, mine.label, offset));
}

// float32 alone: does the second best stay within the bound of the best?
__device__ inline bool undecided(const Leaders<float> &row, int d)
{
    const float relative = 2.1f * (static_cast<float>(d) + 3.0f) * 0x1p-24f * 1.01f;
    const float threshold = fmaf(row.best, relative, row.best) * (1.0f + 0x1p-22f) + static_cast<float>(d) * 0x1p-147f;
    return !(row.second > threshold) || !(row.best < 0x1p127f);
}
__device__ inline bool undecided(const Leaders<double> &, int) { return false; }

template <typename T>
__global__ void __launch_bounds__(threads) tiled_kernel(View<T> view, const Control *control, SettleList list,
                                                        std::int32_t *labels)
{
    if (stopped(control))
        return;
    __shared__ TileBuffer<T> buffer;
    const int tx = static_cast<int>(threadIdx.x % 16), ty = static_cast<int>(threadIdx.x / 16);
    const std::int64_t row0 = std::int64_t{blockIdx.x} * tile;
    const T infinity = static_cast<T>(__int_as_float(0x7f800000));
    Leaders<T> leaders[8];
    for (Leaders<T> &row : leaders)
        row = {infinity, infinity, 0x7fffffff};
    for (int c0 = 0; c0 < view.k; c0 += tile) {
        T sums[8][8] = {};
        tile_sums(view, row0, c0, buffer, sums);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int centroid = c0 + member(tx, j);
            if (centroid >= view.k)
                continue;
#pragma unroll
            for (int i = 0; i < 8; ++i)
                leaders[i].add(sums[i][j], centroid);
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        merge_over_lanes(leaders[i]);
        const std::int64_t row = row0 + member(ty, i);
        const bool mine = tx == 0 && row < view.n, open = mine && view.k > 1 && undecided(leaders[i], view.d);
        std::int32_t position;
        append_by_warp(list.count, open, position);
        if (open)
            list.rows[position] = static_cast<std::int32_t>(row);
        else if (mine)
            labels[row] = view.k > 1 ? leaders[i].label : 0;
    }
}

} // namespace

template <typename T>
void assign_tiled(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    constexpr std::int64_t most = std::int64_t{1} << 23; // rows per launch: bounds the list
    const double terms = static_cast<double>(view.k) * static_cast<double>(view.d);
    const double rate = sizeof(T) == 4 ? 8e12 : 2e12;
    const std::int64_t rows = std::clamp<std::int64_t>(static_cast<std::int64_t>(rate * 0.03 / terms), 4096, most);
    for (std::int64_t first = 0; first < view.n; first += rows) {
        const View<T> part = slice(view, first, std::min(rows, view.n - first));
        const std::size_t listed = sizeof(T) == 4 ? static_cast<std::size_t>(part.n) : 0;
        std::int32_t *memory = reinterpret_cast<std::int32_t *>(stage.context.scratch((listed + 64) * 4));
        const SettleList list = {memory, memory + 64};
        checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(memory, 0, 256, stage.stream); });
        tiled_kernel<<<static_cast<unsigned>((part.n + tile - 1) / tile), threads, 0, stage.stream>>>(
            part, stage.control, list, labels + first);
        launched("tiled_kernel");
        if (sizeof(T) == 4)
            settle(stage, part, list, labels + first);
    }
}

template void assign_tiled<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_tiled<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
