// sums.cu (mixture) - the M step's sums from responsibilities, for any shape. Rows are centred on the component's old
// mean, so that wide offsets do not cancel digits.
//
// Data: a block adds up one item's rows: for the first sums and the variances 32 components by 32 features, four of
// these pairs a thread; for full covariances a tile of 64 by 64 features of one component's lower triangle, on the
// tensor cores.
// Threads: each block owns its part of the item's copy of the sums; asynchronous copies fill the scatter's tiles one
// ahead.
// Error: float64, rows added in the order in which they lie.
#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int weighted_threads = 256;
constexpr int weighted_tile = 32; // components, features, and rows at a time

template <typename T>
__global__ void __launch_bounds__(weighted_threads) weighted_kernel(Launch<T> launch, bool squares)
{
    __shared__ double x[weighted_tile][weighted_tile + 1], share[weighted_tile][weighted_tile + 1];
    const Item item = launch.items[blockIdx.x];
    if (stopped(launch))
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    const int d = launch.d, k = mixture.k, n = item.n;
    const T *values = launch.values + item.first * d;
    const double *shares = launch.workspace + item.shares;
    const int feature = static_cast<int>(blockIdx.z) * weighted_tile;
    const int at = static_cast<int>(threadIdx.x) % weighted_tile, other = static_cast<int>(threadIdx.x) / weighted_tile;
    const int f0 = static_cast<int>(threadIdx.x) % 16, j0 = static_cast<int>(threadIdx.x) / 16;
    for (int component = static_cast<int>(blockIdx.y) * weighted_tile; component < k;
         component += static_cast<int>(gridDim.y) * weighted_tile) {
        double mean[2][2], first[2][2] = {}, second[2][2] = {};
#pragma unroll
        for (int a = 0; a < 2; ++a)
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                const int j = component + j0 + 16 * a, f = feature + f0 + 16 * b;
                mean[a][b] = j < k && f < d ? mixture.means[std::int64_t{j} * d + f] : 0.0;
            }
        for (int row = 0; row < n; row += weighted_tile) {
            __syncthreads();
            for (int i = other; i < weighted_tile; i += weighted_threads / weighted_tile) {
                x[i][at] = row + i < n && feature + at < d
                               ? static_cast<double>(values[std::int64_t{row + i} * d + feature + at])
                               : 0.0;
                share[i][at] =
                    row + at < n && component + i < k ? shares[std::int64_t{component + i} * n + row + at] : 0.0;
            }
            __syncthreads();
#pragma unroll 4
            for (int i = 0; i < weighted_tile; ++i)
#pragma unroll
                for (int a = 0; a < 2; ++a)
#pragma unroll
                    for (int b = 0; b < 2; ++b) {
                        const double centred = x[i][f0 + 16 * b] - mean[a][b];
                        const double product = share[j0 + 16 * a][i] * centred;
                        first[a][b] += product;
                        second[a][b] = fma(product, centred, second[a][b]);
                    }
        }
        double *sums = mixture.sums + item.slot * mixture.layout.values();
#pragma unroll
        for (int a = 0; a < 2; ++a)
#pragma unroll
            for (int b = 0; b < 2; ++b) {
                const int j = component + j0 + 16 * a, f = feature + f0 + 16 * b;
                if (j >= k || f >= d)
                    continue;
                sums[mixture.layout.first(j) + f] += first[a][b];
                if (squares)
                    sums[mixture.layout.second(j) + f] += second[a][b];
            }
    }
}

constexpr int scatter_threads = 128; // four warps of 16 features
constexpr int scatter_tile = 64;
constexpr int scatter_rows = 32;
constexpr int scatter_stride = conflict_free(scatter_tile);

// Rows as they come, of two runs of 64 features; two of these in turn, one on its way while the other
// is worked on.
template <typename T>
struct ScatterRows {
    // Of the first run lanes (t, g) read (row t, feature g): without conflicts of banks.
    static constexpr int stride = sizeof(T) == 4 ? scatter_tile + 8 : conflict_free(scatter_tile);
    double share[scatter_rows];
    T a[scatter_rows * stride];
    T b[scatter_rows * stride];
};

template <typename T>
struct ScatterTiles {
    double centred[scatter_rows * scatter_stride]; // x - mean of the second run
    ScatterRows<T> rows[2];
};

// Asynchronously `n` rows; what lies outside is 0.
template <typename T>
__device__ void load_scatter(const T *values, const double *share, int n, int d, int a, int b, ScatterRows<T> &rows)
{
    constexpr int stride = ScatterRows<T>::stride;
    copy_rows<scatter_rows, scatter_tile, stride, scatter_threads>(rows.a, values + a, d, n, d - a);
    copy_rows<scatter_rows, scatter_tile, stride, scatter_threads>(rows.b, values + b, d, n, d - b);
    copy_rows<1, scatter_rows, scatter_rows, scatter_threads>(rows.share, share, 0, 1, n);
    __pipeline_commit();
}

// The second run less its means, for all warps.
template <typename T>
__device__ void centre_scatter(const ScatterRows<T> &rows, double mean, double *centred)
{
    const int f = static_cast<int>(threadIdx.x) % scatter_tile;
#pragma unroll
    for (int step = 0; step < scatter_rows * scatter_tile / scatter_threads; ++step) {
        const int i = static_cast<int>(threadIdx.x) / scatter_tile + step * (scatter_threads / scatter_tile);
        centred[i * scatter_stride + f] = static_cast<double>(rows.b[i * rows.stride + f]) - mean;
    }
}

// This warp's 16 features of the first run by `parts` eights of the second. means: of the features g and
// g + 8. Rows beyond the last have a share of 0.
template <typename T>
__device__ void add_products(const ScatterRows<T> &rows, const double *centred, const double (&means)[2], int n,
                             int parts, double (&sum)[8][4])
{
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const T *x = rows.a + t * rows.stride + static_cast<int>(threadIdx.x) / 32 * 16 + g;
    const double *y = centred + t * scatter_stride + g;
    for (int i = 0; i < n; i += 8) {
        double a[4];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            const int row = i + v / 2 * 4;
            a[v] = rows.share[row + t] * (static_cast<double>(x[row * rows.stride + v % 2 * 8]) - means[v % 2]);
        }
#pragma unroll
        for (int part = 0; part < 8; ++part) {
            if (part >= parts)
                break;
            const double b[2] = {y[i * scatter_stride + 8 * part], y[(i + 4) * scatter_stride + 8 * part]};
            multiply_add(sum[part], a, b);
        }
    }
}

// Tile y of the lower triangle: row `*a` and column `*b` of tiles, b <= a.
__device__ void tile_at(int y, int *a, int *b)
{
    int row = 0;
    while ((row + 1) * (row + 2) / 2 <= y)
        ++row;
    *a = row * scatter_tile;
    *b = (y - row * (row + 1) / 2) * scatter_tile;
}

template <typename T>
__global__ void __launch_bounds__(scatter_threads, 3) scatter_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    ScatterTiles<T> &tiles = *reinterpret_cast<ScatterTiles<T> *>(memory);
    const Item item = launch.items[blockIdx.x];
    if (stopped(launch))
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    const int d = launch.d, warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    int a, b;
    tile_at(static_cast<int>(blockIdx.y), &a, &b);
    const int own = a + 16 * warp; // the warp's first feature
    const int wanted = own >= d ? 0 : min(min(d, own + 16) - b, scatter_tile);
    const int parts = (wanted + 7) / 8;
    const int second = b + static_cast<int>(threadIdx.x) % scatter_tile;
    const T *values = launch.values + item.first * d;
    for (int j = static_cast<int>(blockIdx.z); j < mixture.k; j += static_cast<int>(gridDim.z)) {
        const double *share = launch.workspace + item.shares + std::int64_t{j} * item.n;
        const double *mean = mixture.means + std::int64_t{j} * d;
        const double mean_b = second < d ? mean[second] : 0.0;
        double means[2], sum[8][4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half)
            means[half] = own + lane / 4 + 8 * half < d ? mean[own + lane / 4 + 8 * half] : 0.0;
        __syncthreads();
        load_scatter(values, share, min(scatter_rows, item.n), d, a, b, tiles.rows[0]);
        for (int row = 0, turn = 0; row < item.n; row += scatter_rows, turn ^= 1) {
            const int next = row + scatter_rows;
            if (next < item.n) {
                load_scatter(values + std::int64_t{next} * d, share + next, min(scatter_rows, item.n - next), d, a, b,
                             tiles.rows[turn ^ 1]);
                __pipeline_wait_prior(1);
            } else {
                __pipeline_wait_prior(0);
            }
            __syncthreads();
            centre_scatter(tiles.rows[turn], mean_b, tiles.centred);
            __syncthreads();
            add_products(tiles.rows[turn], tiles.centred, means, min(scatter_rows, item.n - row), parts, sum);
            __syncthreads();
        }
        double *out = mixture.sums + item.slot * mixture.layout.values() + mixture.layout.second(j);
#pragma unroll
        for (int part = 0; part < 8; ++part)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const std::int64_t r = own + lane / 4 + i / 2 * 8, c = b + 8 * part + lane % 4 * 2 + i % 2;
                if (r < d && c <= r)
                    out[r * (r + 1) / 2 + c] += sum[part][i];
            }
    }
}

} // namespace

template <typename T>
void weighted_sums(const Launch<T> &launch, const Extent &extent, bool squares, cudaStream_t stream)
{
    const dim3 grid(extent.n_items,
                    static_cast<unsigned>(std::min((extent.most_k + weighted_tile - 1) / weighted_tile, 65535)),
                    static_cast<unsigned>((launch.d + weighted_tile - 1) / weighted_tile));
    weighted_kernel<<<grid, weighted_threads, 0, stream>>>(launch, squares);
    launched("weighted_kernel");
}

template <typename T>
void scatter_sums(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    const int tiles = (launch.d + scatter_tile - 1) / scatter_tile;
    const dim3 grid(extent.n_items, static_cast<unsigned>(tiles * (tiles + 1) / 2),
                    static_cast<unsigned>(std::min(extent.most_k, 65535)));
    constexpr int bytes = sizeof(ScatterTiles<T>);
    checked("cudaFuncSetAttribute", [&] { return allow_shared_memory(scatter_kernel<T>, bytes); });
    scatter_kernel<<<grid, scatter_threads, bytes, stream>>>(launch);
    launched("scatter_kernel");
}

#define PGKM_INSTANTIATE(T)                                                                \
    template void weighted_sums<T>(const Launch<T> &, const Extent &, bool, cudaStream_t); \
    template void scatter_sums<T>(const Launch<T> &, const Extent &, cudaStream_t)
PGKM_INSTANTIATE(float);
PGKM_INSTANTIATE(double);

} // namespace pgkm::cuda::mixture
