// densities.cu (mixture) - log densities for any shape: of full, by products of rows with W; of diag, spherical, and
// tied after its rows are multiplied by W, where each feature has a factor of its own.
//
// Data: a block takes 64 rows. Full (product_tile.cuh): one component at a time; rows centred on its mean are
// multiplied by its W, of which only the sums of squares leave registers. Tied: the rows are multiplied by W once,
// about an origin amid the means, and so are the means. A factor for each feature: 64 rows by 16 components, 16
// features deep, from shared memory; a thread has four rows of one component, with two barriers for every 16 features.
// Error: float64 products and sums of d terms; rows are centred first, so that wide offsets do not cancel digits.
#include "mixture/log_sum_exp.cuh"
#include "mixture/product_tile.cuh"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

template <typename V>
using MatrixTile = ProductTile<V, Factors::triangular>;

// Rows [row, row + 64) of n by W, about an origin.
template <typename V>
__device__ ProductSource<V> rows_by(const V *values, int n, int d, int row, const double *origin, const double *factor)
{
    return {values + std::int64_t{row} * d, origin, n - row, d, factor, d, d};
}

template <typename T>
__global__ void __launch_bounds__(product_threads, 3) full_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows, d = launch.d;
    if (stopped(launch.stop) || row >= item.n)
        return;
    const MixtureView &mixture = launch.mixtures[item.problem];
    for (std::int64_t j = blockIdx.z; j < mixture.k; j += gridDim.z) {
        MatrixTile<T> tile(
            rows_by(launch.values + item.first * d, item.n, d, row, mixture.means + j * d, mixture.factors + j * d * d),
            memory);
        double squares[2][2] = {};
        tile.run(0, product_columns, [&](int) {
#pragma unroll
            for (int m = 0; m < product_columns / 16; ++m)
#pragma unroll
                for (int part = 0; part < 2; ++part)
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        squares[part][i % 2] =
                            fma(tile.product(m, part, i), tile.product(m, part, i), squares[part][i % 2]);
        });
        double *out = launch.workspace + item.shares + j * item.n;
#pragma unroll
        for (int part = 0; part < 2; ++part)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const double square = over_lanes<4, 16>(squares[part][i], [](double a, double b) { return a + b; });
                const int own = row + tile.row(part, i);
                if (g() == 0 && own < item.n)
                    out[own] = fma(-0.5, square, mixture.constants[j]);
            }
    }
}

// 64 rows W (x - origin) from `row` on.
template <typename V>
__device__ void rotate(const V *values, int n, int d, int row, const MixtureView &mixture, double *out)
{
    extern __shared__ double2 memory[];
    MatrixTile<V> tile(rows_by(values, n, d, row, mixture.origin, mixture.factors), memory);
    tile.run(0, product_columns, [&](int column) {
#pragma unroll
        for (int m = 0; m < product_columns / 16; ++m)
#pragma unroll
            for (int part = 0; part < 2; ++part)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int r = row + tile.row(part, i), c = column + tile.column(m, i);
                    if (r < n && c < d)
                        out[std::int64_t{r} * d + c] = tile.product(m, part, i);
                }
    });
}

template <typename T>
__global__ void __launch_bounds__(product_threads, 3) rotate_kernel(Launch<T> launch)
{
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows;
    if (stopped(launch.stop) || row >= item.n)
        return;
    rotate(launch.values + item.first * launch.d, item.n, launch.d, row, launch.mixtures[item.problem],
           launch.workspace + item.rotated);
}

__global__ void __launch_bounds__(product_threads, 3) rotate_means_kernel(const MixtureView *mixtures, int d)
{
    const MixtureView &mixture = mixtures[blockIdx.x];
    for (int row = static_cast<int>(blockIdx.y) * tile_rows; row < mixture.k;
         row += static_cast<int>(gridDim.y) * tile_rows)
        rotate(mixture.means, mixture.k, d, row, mixture, mixture.targets);
}

// ---- a factor for each feature ----

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

void rotate_means(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                  cudaStream_t stream)
{
    enqueue(rotate_means_kernel,
            {n_problems, std::min<std::int64_t>((most_k + tile_rows - 1) / tile_rows, most_blocks)}, product_threads,
            MatrixTile<double>::bytes, stream, mixtures, static_cast<int>(d));
}

template <typename T>
void full_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    enqueue(full_kernel<T>, tile_grid(extent, 1), product_threads, MatrixTile<T>::bytes, stream, launch);
}

template <typename T>
void rotate_rows(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    dim3 grid = tile_grid(extent, 1);
    grid.z = 1;
    enqueue(rotate_kernel<T>, grid, product_threads, MatrixTile<T>::bytes, stream, launch);
}

template void full_densities<float>(const Launch<float> &, const Extent &, cudaStream_t);
template void full_densities<double>(const Launch<double> &, const Extent &, cudaStream_t);
template void rotate_rows<float>(const Launch<float> &, const Extent &, cudaStream_t);
template void rotate_rows<double>(const Launch<double> &, const Extent &, cudaStream_t);

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
