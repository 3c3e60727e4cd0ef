// sums.cu (mixture) - the M step's sums from responsibilities, for any shape: first sums and variances, and second sums
// of full covariances. Rows are centred on the component's old mean, so that wide offsets do not cancel digits.
//
// First sums and variances. Data: a block adds up one item's rows: 32 components by 32 features, four of these pairs a
// thread. Threads: two barriers for every 32 rows.
//
// Second sums. Data: a block adds up one item's rows for one component and either the lower triangle of a run of 64
// features (20 fragments of 16 x 8) or a rectangle of 64 by 32 features below it (16). Each of its four warps has all
// of them in registers, and every fourth run of eight rows, so that warps have equal work in a triangle, too. The
// triangle's left sides are its right sides times responsibilities. Threads: a warp keeps its rows in shared memory by
// itself, two runs in turn, the next in registers. At the end warps join their sums one after the other.
//
// Each block owns its part of the item's copy of the sums.
// Error: float64; the order in which rows are added depends on the item alone.
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
    if (stopped(launch.stop))
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

// ---- second sums of full ----

constexpr int threads = 128;
constexpr int warps = threads / 32;
constexpr int run = 64;     // features of a triangle, and the longer side of a rectangle
constexpr int breadth = 32; // of a rectangle
constexpr int rows_at_once = 8;

template <typename T, bool Triangle>
class ScatterTile {
    static constexpr int features = Triangle ? run : run + breadth;
    static constexpr int stride = conflict_free(features);
    static constexpr int loads = features / 32;
    static constexpr int fragments = Triangle ? 20 : 16;

  public:
    static constexpr int bytes = 8 * std::max(warps * 2 * rows_at_once * stride, fragments * 4 * 32);

    // Features [a, a + 64) by [b, ...).
    __device__ ScatterTile(const Launch<T> &launch, const Item &item, int a, int b, double *memory)
        : values_(launch.values + item.first * launch.d), d_(launch.d), n_(item.n), a_(a), b_(b), memory_(memory),
          buffers_(memory + warp() * 2 * rows_at_once * stride)
    {
    }

    __device__ void run_component(const MixtureView &mixture, const double *shares, int j)
    {
        double mean[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i)
            mean[i] = feature(i) < d_ ? mixture.means[std::int64_t{j} * d_ + feature(i)] : 0.0;
#pragma unroll
        for (int i = 0; i < fragments; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum_[i][e] = 0.0;
        T next[rows_at_once][loads];
        double share[2];
        fetch(rows_at_once * warp(), shares, next, share);
        for (int row = rows_at_once * warp(), turn = 0; row < n_; row += rows_at_once * warps, turn ^= 1) {
            double *buffer = buffers_ + turn * rows_at_once * stride;
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i)
#pragma unroll
                for (int l = 0; l < loads; ++l)
                    buffer[i * stride + 32 * l + lane()] = static_cast<double>(next[i][l]) - mean[l];
            const double own[2] = {share[0], share[1]};
            fetch(row + rows_at_once * warps, shares, next, share);
            __syncwarp(); // the rows are there; those two turns ago are done with
            multiply(buffer, own);
        }
        join();
    }

    __device__ void store(double *out) const
    {
        if (warp() != 0)
            return;
        for_fragments([&](int number, int m, int part) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const std::int64_t r = a_ + 16 * m + g() + i / 2 * 8, c = b_ + 8 * part + 2 * t() + i % 2;
                if (r < d_ && c <= r)
                    out[r * (r + 1) / 2 + c] += sum_[number][i];
            }
        });
    }

  private:
    // The lane's i-th feature.
    __device__ int feature(int i) const
    {
        return (32 * i < run ? a_ + 32 * i : b_) + lane();
    }

    // Calls use(number, m, part): fragments of sixteens m of [a, ..) by eights of [b, ..).
    template <typename Use>
    __device__ static void for_fragments(Use &&use)
    {
#pragma unroll
        for (int m = 0; m < run / 16; ++m)
#pragma unroll
            for (int part = 0; part < (Triangle ? 2 * m + 2 : breadth / 8); ++part)
                use(Triangle ? m * (m + 1) + part : m * (breadth / 8) + part, m, part);
    }

    // Rows that there are not have a share of 0.
    __device__ void fetch(int row, const double *shares, T (&next)[rows_at_once][loads], double (&share)[2]) const
    {
#pragma unroll
        for (int i = 0; i < rows_at_once; ++i)
#pragma unroll
            for (int l = 0; l < loads; ++l)
                next[i][l] = row + i < n_ && feature(l) < d_ ? values_[std::int64_t{row + i} * d_ + feature(l)] : T{0};
#pragma unroll
        for (int half = 0; half < 2; ++half)
            share[half] = row + t() + 4 * half < n_ ? shares[row + t() + 4 * half] : 0.0;
    }

    // The product's inner index t stands for row t, t + 4 for row t + 4.
    __device__ void multiply(const double *buffer, const double (&share)[2])
    {
        const double *x = buffer + t() * stride + g();
        double y[Triangle ? run / 8 : breadth / 8][2];
#pragma unroll
        for (int part = 0; part < (Triangle ? run / 8 : breadth / 8); ++part)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                y[part][half] = x[4 * half * stride + (Triangle ? 0 : run) + 8 * part];
#pragma unroll
        for (int m = 0; m < run / 16; ++m) {
            if (a_ + 16 * m >= d_)
                break;
            double a[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[i] = share[i / 2] *
                       (Triangle ? y[2 * m + i % 2][i / 2] : x[4 * (i / 2) * stride + 16 * m + 8 * (i % 2)]);
#pragma unroll
            for (int part = 0; part < (Triangle ? 2 * m + 2 : breadth / 8); ++part)
                multiply_add(sum_[Triangle ? m * (m + 1) + part : m * (breadth / 8) + part], a, y[part]);
        }
    }

    // All warps' sums to the first warp's, one warp after the other.
    __device__ void join()
    {
        for (int other = 1; other < warps; ++other) {
            __syncthreads();
            if (warp() == other)
                for_fragments([&](int number, int, int) {
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        memory_[(number * 4 + e) * 32 + lane()] = sum_[number][e];
                });
            __syncthreads();
            if (warp() == 0)
                for_fragments([&](int number, int, int) {
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        sum_[number][e] += memory_[(number * 4 + e) * 32 + lane()];
                });
        }
        __syncthreads();
    }

    const T *const values_;
    const int d_, n_, a_, b_;
    double *const memory_;
    double *const buffers_; // the warp's
    double sum_[fragments][4];
};

// Blocks (item, tile, component). Rectangles: of run r, which has 2 r of them, from the second run on.
template <typename T, bool Triangle>
__global__ void __launch_bounds__(threads, 2) scatter_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    const Item item = launch.items[blockIdx.x];
    if (stopped(launch.stop))
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    int r = static_cast<int>(blockIdx.y), b = r;
    if constexpr (!Triangle) {
        for (r = 1; b >= 2 * r; ++r)
            b -= 2 * r;
    }
    ScatterTile<T, Triangle> tile(launch, item, run * r, (Triangle ? run : breadth) * b,
                                  reinterpret_cast<double *>(memory));
    for (int j = static_cast<int>(blockIdx.z); j < mixture.k; j += static_cast<int>(gridDim.z)) {
        tile.run_component(mixture, launch.workspace + item.shares + std::int64_t{j} * item.n, j);
        tile.store(mixture.sums + item.slot * mixture.layout.values() + mixture.layout.second(j));
    }
}

template <typename T, bool Triangle>
void launch_scatter(const Launch<T> &launch, const Extent &extent, int tiles, cudaStream_t stream)
{
    if (tiles == 0)
        return;
    enqueue(scatter_kernel<T, Triangle>, {extent.n_items, tiles, std::min<int>(extent.most_k, most_blocks)}, threads,
            ScatterTile<T, Triangle>::bytes, stream, launch);
}

} // namespace

template <typename T>
void weighted_sums(const Launch<T> &launch, const Extent &extent, bool squares, cudaStream_t stream)
{
    const auto tiles = [](int values) { return (values + weighted_tile - 1) / weighted_tile; };
    enqueue(weighted_kernel<T>, {extent.n_items, std::min(tiles(extent.most_k), 65535), tiles(launch.d)},
            weighted_threads, 0, stream, launch, squares);
}

template void weighted_sums<float>(const Launch<float> &, const Extent &, bool, cudaStream_t);
template void weighted_sums<double>(const Launch<double> &, const Extent &, bool, cudaStream_t);

template <typename T>
void scatter_sums(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    const int runs = (launch.d + run - 1) / run;
    launch_scatter<T, true>(launch, extent, runs, stream);
    launch_scatter<T, false>(launch, extent, runs * (runs - 1), stream);
}

template void scatter_sums<float>(const Launch<float> &, const Extent &, cudaStream_t);
template void scatter_sums<double>(const Launch<double> &, const Extent &, cudaStream_t);

} // namespace pgkm::cuda::mixture
