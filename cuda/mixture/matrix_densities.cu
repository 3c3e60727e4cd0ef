// matrix_densities.cu (mixture) - products of rows with W: log densities of full, and the rows of tied, for any
// shape.
//
// Data: a block takes 64 rows (product_tile.cuh). Full: one component at a time; rows centred on its mean are
// multiplied by its W, of which only the sums of squares leave registers. Tied: the rows are multiplied by W once,
// about an origin amid the means, and so are the means.
// Error: float64 products and sums of d terms; rows are centred first, so that wide offsets do not cancel digits.
#include "mixture/log_sum_exp.cuh"
#include "mixture/product_tile.cuh"

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

} // namespace pgkm::cuda::mixture
