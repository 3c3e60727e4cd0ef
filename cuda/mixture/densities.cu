// densities.cu - log densities of any number of rows, features and components.
//
// Full: a block takes 64 rows and one component at a time; rows centred on its mean are multiplied by
// W on the tensor cores, 64 rows of W at a time and 32 features deep, from shared memory; the squares
// never leave registers. Tied: the rows are multiplied by W once, about an origin amid the means.
// Diag, spherical, and tied after that: 64 rows by 16 components, four rows a thread.
#include "mma.cuh"
#include "stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int depth = 32;                    // features of a tile
constexpr int columns = 64;                  // rows of W of a tile
constexpr int stride = conflict_free(depth); // of both tiles
constexpr int matrix_threads = 128;          // four warps of 16 rows
constexpr unsigned most_blocks = 65535;      // of a grid's second and third dimension

struct Tiles {
    double x[tile_rows * stride];
    double w[columns * stride];
};

// Rows [row, row + 64) less `centre`, features [from, from + 32); what lies outside is 0.
template <typename T>
__device__ void load_rows(const T *values, int n, int d, int row, int from, const double *centre, double *tile)
{
    const int f = static_cast<int>(threadIdx.x) % depth, feature = from + f;
    const double shift = feature < d ? centre[feature] : 0.0;
#pragma unroll 8
    for (int i = 0; i < tile_rows * depth / matrix_threads; ++i) {
        const int r = static_cast<int>(threadIdx.x) / depth + i * (matrix_threads / depth);
        const bool inside = row + r < n && feature < d;
        tile[r * stride + f] = inside ? static_cast<double>(values[std::int64_t{row + r} * d + feature]) - shift : 0.0;
    }
}

__device__ void load_factor(const double *factor, int d, int column, int from, double *tile)
{
    const int f = static_cast<int>(threadIdx.x) % depth, feature = from + f;
#pragma unroll 8
    for (int i = 0; i < columns * depth / matrix_threads; ++i) {
        const int c = static_cast<int>(threadIdx.x) / depth + i * (matrix_threads / depth);
        tile[c * stride + f] = column + c < d && feature < d ? factor[std::int64_t{column + c} * d + feature] : 0.0;
    }
}

// This warp's 16 rows times columns [column, column + 64) of W', from the features of the tiles.
__device__ void multiply(const Tiles &tiles, int column, int from, int d, double (&product)[8][4])
{
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const double *x = tiles.x + (static_cast<int>(threadIdx.x) / 32 * 16 + g) * stride + t;
    const double *w = tiles.w + g * stride + t;
    for (int step = 0; step < depth / 8 && from + 8 * step < d; ++step) {
        const double a[4] = {x[8 * step], x[8 * stride + 8 * step], x[8 * step + 4], x[8 * stride + 8 * step + 4]};
#pragma unroll
        for (int part = 0; part < 8; ++part) {
            const int first = column + 8 * part;
            if (first >= d || from + 8 * step > first + 7)
                continue; // beyond W, or above its diagonal
            const double b[2] = {w[8 * part * stride + 8 * step], w[8 * part * stride + 8 * step + 4]};
            multiply_add(product[part], a, b);
        }
    }
}

// use(column, product) with W (x - centre) for 64 rows from `row` on, 64 rows of W after the other.
template <typename T, typename Use>
__device__ void transform(const T *values, int n, int d, int row, const double *centre, const double *factor,
                          Tiles &tiles, Use &&use)
{
    for (int column = 0; column < d; column += columns) {
        double product[8][4] = {};
        for (int from = 0; from < d && from < column + columns; from += depth) {
            __syncthreads();
            load_rows(values, n, d, row, from, centre, tiles.x);
            load_factor(factor, d, column, from, tiles.w);
            __syncthreads();
            multiply(tiles, column, from, d, product);
        }
        use(column, product);
    }
}

template <typename T>
__global__ void __launch_bounds__(matrix_threads) full_kernel(Launch<T> launch)
{
    __shared__ Tiles tiles;
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows, d = launch.d;
    if (stopped(launch) || row >= item.n)
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    const T *values = launch.values + item.first * d;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int own = row + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4; // and the one 8 beyond
    for (int j = static_cast<int>(blockIdx.z); j < mixture.k; j += static_cast<int>(gridDim.z)) {
        double square[2] = {};
        transform(values, item.n, d, row, mixture.means + std::int64_t{j} * d,
                  mixture.factors + std::int64_t{j} * d * d, tiles, [&](int, const double(&product)[8][4]) {
#pragma unroll
                      for (int part = 0; part < 8; ++part)
#pragma unroll
                          for (int i = 0; i < 4; ++i)
                              square[i / 2] = fma(product[part][i], product[part][i], square[i / 2]);
                  });
        double *out = launch.workspace + item.shares + std::int64_t{j} * item.n;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            square[half] += __shfl_xor_sync(~0u, square[half], 1);
            square[half] += __shfl_xor_sync(~0u, square[half], 2);
            if (lane % 4 == 0 && own + 8 * half < item.n)
                out[own + 8 * half] = fma(-0.5, square[half], mixture.constants[j]);
        }
    }
}

// Rows W (x - origin) into the workspace.
template <typename T>
__global__ void __launch_bounds__(matrix_threads) rotate_kernel(Launch<T> launch)
{
    __shared__ Tiles tiles;
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows, d = launch.d;
    if (stopped(launch) || row >= item.n)
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int own = row + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
    double *out = launch.workspace + item.rotated;
    transform(launch.values + item.first * d, item.n, d, row, mixture.origin, mixture.factors, tiles,
              [&](int column, const double(&product)[8][4]) {
#pragma unroll
                  for (int part = 0; part < 8; ++part)
#pragma unroll
                      for (int i = 0; i < 4; ++i) {
                          const int r = own + i / 2 * 8, c = column + 8 * part + lane % 4 * 2 + i % 2;
                          if (r < item.n && c < d)
                              out[std::int64_t{r} * d + c] = product[part][i];
                      }
              });
}

constexpr int scaled_threads = 256;
constexpr int scaled_components = 16;
constexpr int scaled_depth = 16;

struct ScaledTiles {
    double x[scaled_depth][tile_rows + 1];
    double mean[scaled_depth][scaled_components + 1];
    double factor[scaled_depth][scaled_components + 1];
};

// centres: k x d; factors: k x d, or nullptr for ones.
template <typename V>
__device__ void scaled_tile(const V *values, int n, int d, int row, const MixtureView &mixture, const double *centres,
                            const double *factors, int component, ScaledTiles &tiles, double *shares)
{
    const int at = static_cast<int>(threadIdx.x) % 16, other = static_cast<int>(threadIdx.x) / 16;
    double square[4] = {};
    for (int from = 0; from < d; from += scaled_depth) {
        const int f = from + at, j = component + other;
        const std::int64_t cell = std::int64_t{j} * d + f;
        __syncthreads();
        for (int r = other; r < tile_rows; r += 16)
            tiles.x[at][r] = row + r < n && f < d ? static_cast<double>(values[std::int64_t{row + r} * d + f]) : 0.0;
        tiles.mean[at][other] = j < mixture.k && f < d ? centres[cell] : 0.0;
        tiles.factor[at][other] = j < mixture.k && f < d ? (factors == nullptr ? 1.0 : factors[cell]) : 0.0;
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

template <typename T, bool Tied>
__global__ void __launch_bounds__(scaled_threads) scaled_kernel(Launch<T> launch)
{
    __shared__ ScaledTiles tiles;
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows, d = launch.d;
    if (stopped(launch) || row >= item.n)
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    double *shares = launch.workspace + item.shares;
    for (int j = static_cast<int>(blockIdx.z) * scaled_components; j < mixture.k;
         j += static_cast<int>(gridDim.z) * scaled_components)
        if constexpr (Tied)
            scaled_tile(launch.workspace + item.rotated, item.n, d, row, mixture, mixture.targets, nullptr, j, tiles,
                        shares);
        else
            scaled_tile(launch.values + item.first * d, item.n, d, row, mixture, mixture.means, mixture.factors, j,
                        tiles, shares);
}

dim3 grid_of(const Extent &extent, int components)
{
    return dim3(extent.n_items, static_cast<unsigned>((extent.most_rows + tile_rows - 1) / tile_rows),
                std::min(most_blocks, static_cast<unsigned>((extent.most_k + components - 1) / components)));
}

} // namespace

template <typename T>
void full_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    full_kernel<<<grid_of(extent, 1), matrix_threads, 0, stream>>>(launch);
    launched("full_kernel");
}

template <typename T>
void scaled_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    scaled_kernel<T, false><<<grid_of(extent, scaled_components), scaled_threads, 0, stream>>>(launch);
    launched("scaled_kernel");
}

template <typename T>
void tied_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    dim3 grid = grid_of(extent, 1);
    grid.z = 1;
    rotate_kernel<<<grid, matrix_threads, 0, stream>>>(launch);
    launched("rotate_kernel");
    scaled_kernel<T, true><<<grid_of(extent, scaled_components), scaled_threads, 0, stream>>>(launch);
    launched("scaled_kernel");
}

#define PGKM_INSTANTIATE(T)                                                             \
    template void full_densities<T>(const Launch<T> &, const Extent &, cudaStream_t);   \
    template void scaled_densities<T>(const Launch<T> &, const Extent &, cudaStream_t); \
    template void tied_densities<T>(const Launch<T> &, const Extent &, cudaStream_t)
PGKM_INSTANTIATE(float);
PGKM_INSTANTIATE(double);

} // namespace pgkm::cuda::mixture
