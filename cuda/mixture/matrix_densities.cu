// matrix_densities.cu (mixture) - products of rows with W: log densities of full, and the rows of tied, for any
// shape.
//
// Data: a block takes 64 rows and one component at a time; rows centred on its mean are multiplied by W on the tensor
// cores, 64 rows of W at a time and 32 features deep, from shared memory; of full only the sums of squares leave
// registers. Tied: the rows are multiplied by W once, about an origin amid the means, and so are the means.
// Threads: asynchronous copies fill one tile ahead; two barriers a tile. A warp has 16 rows.
// Error: float64 products and sums of d terms; rows are centred first, so that wide offsets do not cancel digits.
#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int depth = 32;                    // features of a tile
constexpr int columns = 64;                  // rows of W of a tile
constexpr int stride = conflict_free(depth); // of both tiles
constexpr int matrix_threads = 128;          // four warps of 16 rows

// A tile of rows and one of W; two of them in turn, one on its way while the other is worked on.
template <typename T>
struct Tiles {
    double w[columns * stride];
    double centre[depth];
    T x[tile_rows * stride];
};

// Asynchronously rows [row, row + 64) and columns [column, column + 64) of W', features
// [from, from + 32); what lies outside is 0.
template <typename T>
__device__ void load(Tiles<T> &tiles, const T *values, int n, int d, int row, const double *centre,
                     const double *factor, int column, int from)
{
    copy_rows<tile_rows, depth, stride, matrix_threads>(tiles.x, values + std::int64_t{row} * d + from, d, n - row,
                                                        d - from);
    copy_rows<columns, depth, stride, matrix_threads>(tiles.w, factor + std::int64_t{column} * d + from, d, d - column,
                                                      d - from);
    copy_rows<1, depth, depth, matrix_threads>(tiles.centre, centre + from, 0, 1, d - from);
    __pipeline_commit();
}

// This warp's 16 rows times columns [column, column + 64) of W', from the features of the tiles.
template <typename T>
__device__ void multiply(const Tiles<T> &tiles, int column, int from, int d, double (&product)[8][4])
{
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const T *x = tiles.x + (static_cast<int>(threadIdx.x) / 32 * 16 + g) * stride + t;
    const double *w = tiles.w + g * stride + t;
    for (int step = 0; step < depth / 8 && from + 8 * step < d; ++step) {
        double a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int f = 8 * step + i / 2 * 4;
            a[i] = static_cast<double>(x[i % 2 * 8 * stride + f]) - tiles.centre[f + t];
        }
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
                          Tiles<T> *tiles, Use &&use)
{
    double product[8][4] = {};
    int column = 0, from = 0;
    __syncthreads();
    load(tiles[0], values, n, d, row, centre, factor, 0, 0);
    for (int turn = 0; column < d; turn ^= 1) {
        const bool last = from + depth >= d || from + depth >= column + columns; // of these columns
        const int next_column = last ? column + columns : column, next_from = last ? 0 : from + depth;
        if (next_column < d)
            load(tiles[turn ^ 1], values, n, d, row, centre, factor, next_column, next_from);
        if (next_column < d)
            __pipeline_wait_prior(1);
        else
            __pipeline_wait_prior(0);
        __syncthreads();
        multiply(tiles[turn], column, from, d, product);
        if (last) {
            use(column, product);
#pragma unroll
            for (int part = 0; part < 8; ++part)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    product[part][i] = 0.0;
        }
        __syncthreads();
        column = next_column;
        from = next_from;
    }
}

template <typename T>
__device__ Tiles<T> *shared_tiles()
{
    extern __shared__ double2 memory[];
    return reinterpret_cast<Tiles<T> *>(memory);
}

template <typename T>
__global__ void __launch_bounds__(matrix_threads, 3) full_kernel(Launch<T> launch)
{
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
                  mixture.factors + std::int64_t{j} * d * d, shared_tiles<T>(), [&](int, const double(&product)[8][4]) {
#pragma unroll
                      for (int part = 0; part < 8; ++part)
#pragma unroll
                          for (int i = 0; i < 4; ++i)
                              square[i / 2] = fma(product[part][i], product[part][i], square[i / 2]);
                  });
        double *out = launch.workspace + item.shares + std::int64_t{j} * item.n;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            square[half] = sum_lanes<4>(square[half]);
            if (lane % 4 == 0 && own + 8 * half < item.n)
                out[own + 8 * half] = fma(-0.5, square[half], mixture.constants[j]);
        }
    }
}

// 64 rows W (x - origin) from `row` on.
template <typename T>
__device__ void rotate(const T *values, int n, int d, int row, const MixtureView &mixture, double *out)
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int own = row + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
    transform(values, n, d, row, mixture.origin, mixture.factors, shared_tiles<T>(),
              [&](int column, const double(&product)[8][4]) {
#pragma unroll
                  for (int part = 0; part < 8; ++part)
#pragma unroll
                      for (int i = 0; i < 4; ++i) {
                          const int r = own + i / 2 * 8, c = column + 8 * part + lane % 4 * 2 + i % 2;
                          if (r < n && c < d)
                              out[std::int64_t{r} * d + c] = product[part][i];
                      }
              });
}

template <typename T>
__global__ void __launch_bounds__(matrix_threads, 3) rotate_kernel(Launch<T> launch)
{
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * tile_rows;
    if (stopped(launch) || row >= item.n)
        return;
    rotate(launch.values + item.first * launch.d, item.n, launch.d, row, launch.mixtures[item.problem],
           launch.workspace + item.rotated);
}

__global__ void __launch_bounds__(matrix_threads, 3) rotate_means_kernel(const MixtureView *mixtures, int d)
{
    const MixtureView mixture = mixtures[blockIdx.x];
    for (int row = static_cast<int>(blockIdx.y) * tile_rows; row < mixture.k;
         row += static_cast<int>(gridDim.y) * tile_rows)
        rotate(mixture.means, mixture.k, d, row, mixture, mixture.targets);
}

// A kernel with two tiles of T in shared memory.
template <typename T, typename Kernel, typename... Arguments>
void launch_matrix(Kernel kernel, const dim3 &grid, cudaStream_t stream, const Arguments &...arguments)
{
    constexpr int bytes = 2 * sizeof(Tiles<T>);
    checked("cudaFuncSetAttribute", [&] { return allow_shared_memory(kernel, bytes); });
    kernel<<<grid, matrix_threads, bytes, stream>>>(arguments...);
}

} // namespace

void rotate_means(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                  cudaStream_t stream)
{
    const dim3 grid(static_cast<unsigned>(n_problems),
                    std::min(most_blocks, static_cast<unsigned>((most_k + tile_rows - 1) / tile_rows)));
    launch_matrix<double>(rotate_means_kernel, grid, stream, mixtures, static_cast<int>(d));
    launched("rotate_means_kernel");
}

template <typename T>
void full_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    launch_matrix<T>(full_kernel<T>, tile_grid(extent, 1), stream, launch);
    launched("full_kernel");
}

template <typename T>
void rotate_rows(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    dim3 grid = tile_grid(extent, 1);
    grid.z = 1;
    launch_matrix<T>(rotate_kernel<T>, grid, stream, launch);
    launched("rotate_kernel");
}

template void full_densities<float>(const Launch<float> &, const Extent &, cudaStream_t);
template void full_densities<double>(const Launch<double> &, const Extent &, cudaStream_t);
template void rotate_rows<float>(const Launch<float> &, const Extent &, cudaStream_t);
template void rotate_rows<double>(const Launch<double> &, const Extent &, cudaStream_t);

} // namespace pgkm::cuda::mixture
