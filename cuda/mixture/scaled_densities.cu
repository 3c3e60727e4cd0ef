// scaled_densities.cu (mixture) - log densities where each feature has a factor of its own, for any shape: diag,
// spherical, and tied after rotate_rows().
//
// Data: a block takes 64 rows by 16 components, 16 features deep, from shared memory; a thread has four rows of one
// component.
// Threads: two barriers for every 16 features.
// Error: float64, each term of a feature rounded once.
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int scaled_threads = 256;
constexpr int scaled_components = 16;
constexpr int scaled_depth = 16;

struct ScaledTiles {
    double x[scaled_depth][tile_rows + 1];
    double mean[scaled_depth][scaled_components + 1];
    double factor[scaled_depth][scaled_components + 1];
};

// centres: k x d; factor_of(j, f): a component's of a feature.
template <typename V, typename Factor>
__device__ void scaled_tile(const V *values, int n, int d, int row, const MixtureView &mixture, const double *centres,
                            Factor &&factor_of, int component, ScaledTiles &tiles, double *shares)
{
    const int at = static_cast<int>(threadIdx.x) % 16, other = static_cast<int>(threadIdx.x) / 16;
    double square[4] = {};
    for (int from = 0; from < d; from += scaled_depth) {
        const int f = from + at, j = component + other;
        __syncthreads();
        for (int r = other; r < tile_rows; r += 16)
            tiles.x[at][r] = row + r < n && f < d ? static_cast<double>(values[std::int64_t{row + r} * d + f]) : 0.0;
        tiles.mean[at][other] = j < mixture.k && f < d ? centres[std::int64_t{j} * d + f] : 0.0;
        tiles.factor[at][other] = j < mixture.k && f < d ? factor_of(std::int64_t{j}, f) : 0.0;
        __syncthreads();
#pragma unroll 4
        for (int i = 0; i < scaled_depth; ++i) {
            const double mean = tiles.mean[i][other], factor = tiles.factor[i][other];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const double z = (tiles.x[i][at + 16 * r] - mean) * factor;
                square[r] = fma(z, z, square[r]);
            }
        }
    }
    if (component + other >= mixture.k)
        return;
    for (int r = 0; r < 4; ++r)
        if (row + at + 16 * r < n)
            shares[std::int64_t{component + other} * n + row + at + 16 * r] =
                fma(-0.5, square[r], mixture.constants[component + other]);
}

template <typename T, PgkmCovariance Type>
__global__ void __launch_bounds__(scaled_threads) scaled_kernel(Launch<T> launch)
{
    __shared__ ScaledTiles tiles;
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows, d = launch.d;
    if (stopped(launch.stop) || row >= item.n)
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    double *shares = launch.workspace + item.shares;
    for (int j = static_cast<int>(blockIdx.z) * scaled_components; j < mixture.k;
         j += static_cast<int>(gridDim.z) * scaled_components)
        if constexpr (Type == PGKM_COVARIANCE_TIED)
            scaled_tile(
                launch.workspace + item.rotated, item.n, d, row, mixture, mixture.targets,
                [](std::int64_t, int) { return 1.0; }, j, tiles, shares);
        else
            scaled_tile(
                launch.values + item.first * d, item.n, d, row, mixture, mixture.means,
                [&](std::int64_t i, int f) { return mixture.factors[Type == PGKM_COVARIANCE_DIAG ? i * d + f : i]; }, j,
                tiles, shares);
}

} // namespace

template <typename T>
void scaled_densities(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream)
{
    const auto kernel = type == PGKM_COVARIANCE_TIED   ? scaled_kernel<T, PGKM_COVARIANCE_TIED>
                        : type == PGKM_COVARIANCE_DIAG ? scaled_kernel<T, PGKM_COVARIANCE_DIAG>
                                                       : scaled_kernel<T, PGKM_COVARIANCE_SPHERICAL>;
    enqueue(kernel, tile_grid(extent, scaled_components), scaled_threads, 0, stream, launch);
}

template void scaled_densities<float>(const Launch<float> &, const Extent &, PgkmCovariance, cudaStream_t);
template void scaled_densities<double>(const Launch<double> &, const Extent &, PgkmCovariance, cudaStream_t);

} // namespace pgkm::cuda::mixture
