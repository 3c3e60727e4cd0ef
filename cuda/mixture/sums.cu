// sums.cu (mixture) - the M step's first sums and variances from responsibilities, for any shape. Rows are centred on
// the component's old mean, so that wide offsets do not cancel digits.
//
// Data: a block adds up one item's rows: 32 components by 32 features, four of these pairs a thread.
// Threads: each block owns its part of the item's copy of the sums; two barriers for every 32 rows.
// Error: float64, rows added in the order in which they lie.
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

} // namespace pgkm::cuda::mixture
