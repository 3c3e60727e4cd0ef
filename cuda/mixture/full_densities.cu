// full_densities.cu (mixture) - log densities of full covariances of up to 128 features.
//
// Data: a block keeps 128 rows (64 where float64 rows need the room) in shared memory and takes one component after the
// other: W as fragments for the tensor cores, which pack_kernel has made, with the mean behind them. A warp has 16 of
// the rows; their products with all rows of W stay in registers and only sums of squares leave them. W is lower
// triangular: products with the eights of features above its diagonal are left out.
// Threads: asynchronous copies fetch the next component; one barrier a component.
// Error: float64 products and sums of d terms; rows are centred first, so that wide offsets do not cancel digits.
#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

// Eights of features for which there are kernels.
constexpr int tiles_of(std::int64_t d)
{
    for (const int tiles : {4, 5, 6, 8, 12, 16})
        if (d <= 8 * tiles)
            return tiles;
    return 0;
}

// Values of a component: fragments, then the mean.
__host__ __device__ constexpr int packed_values(int tiles)
{
    return tiles * (tiles + 1) / 2 * 64 + 8 * tiles;
}

// A block packs a component. Fragment (s, c), c >= s, lies behind those of lower s, then of lower c: columns c of W' by
// features s, a lane's two values side by side (mma.cuh).
__global__ void __launch_bounds__(128) pack_kernel(const MixtureView *mixtures, int d, int tiles)
{
    const MixtureView mixture = mixtures[blockIdx.x];
    for (int j = static_cast<int>(blockIdx.y); j < mixture.k; j += static_cast<int>(gridDim.y)) {
        const double *factor = mixture.factors + std::int64_t{j} * d * d;
        double *to = mixture.products + std::int64_t{j} * packed_values(tiles);
        for (int s = 0; s < tiles; ++s)
            for (int c = s; c < tiles; ++c, to += 64)
                if (threadIdx.x < 64) {
                    const int lane = static_cast<int>(threadIdx.x) / 2, half = static_cast<int>(threadIdx.x) % 2;
                    const int column = 8 * c + lane / 4, f = 8 * s + lane % 4 + 4 * half;
                    to[threadIdx.x] = column < d && f < d ? factor[std::int64_t{column} * d + f] : 0.0;
                }
        for (int f = static_cast<int>(threadIdx.x); f < 8 * tiles; f += 128)
            to[f] = f < d ? mixture.means[std::int64_t{j} * d + f] : 0.0;
    }
}

template <typename T, int Tiles>
struct FullDensity {
    static constexpr int warps = sizeof(T) == 8 && Tiles > 12 ? 4 : 8, threads = 32 * warps, rows = 16 * warps;
    static constexpr int stride = sizeof(T) == 4 ? 8 * Tiles + 4 : conflict_free(8 * Tiles);
    static constexpr int packed = packed_values(Tiles);
    static constexpr int bytes = 2 * packed * 8 + rows * stride * static_cast<int>(sizeof(T));
    static constexpr int per_multiprocessor = Tiles <= 8 ? 2 : 1;
};

template <typename T, int Tiles>
__device__ void copy_component(const MixtureView &mixture, int j, double *to)
{
    using Shape = FullDensity<T, Tiles>;
    const double *from = mixture.products + std::int64_t{j} * Shape::packed;
    for (int i = 2 * static_cast<int>(threadIdx.x); i < Shape::packed; i += 2 * Shape::threads)
        copy_or_zero<16>(to + i, from + i, true);
    __pipeline_commit();
}

// |W (x - mean)|^2 of the warp's rows g and g + 8, this lane's part. x: of lane (g, t).
template <typename T, int Tiles>
__device__ void squares(const T *x, const double *packed, double (&square)[2])
{
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const double *mean = packed + Tiles * (Tiles + 1) * 32 + lane % 4;
    const double2 *fragment = reinterpret_cast<const double2 *>(packed) + lane;
    double product[Tiles][4] = {};
#pragma unroll
    for (int s = 0; s < Tiles; ++s) {
        double a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            a[i] = static_cast<double>(x[i % 2 * 8 * FullDensity<T, Tiles>::stride + 8 * s + i / 2 * 4]) -
                   mean[8 * s + i / 2 * 4];
#pragma unroll
        for (int c = s; c < Tiles; ++c, fragment += 32) {
            const double2 w = *fragment;
            const double b[2] = {w.x, w.y};
            multiply_add(product[c], a, b);
        }
    }
    square[0] = square[1] = 0.0;
#pragma unroll
    for (int c = 0; c < Tiles; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            square[i / 2] = fma(product[c][i], product[c][i], square[i / 2]);
}

template <typename T, int Tiles>
__global__ void __launch_bounds__(FullDensity<T, Tiles>::threads, FullDensity<T, Tiles>::per_multiprocessor)
    full_density_kernel(Launch<T> launch)
{
    using Shape = FullDensity<T, Tiles>;
    extern __shared__ double2 memory[];
    double *const packed = reinterpret_cast<double *>(memory);
    T *const x = reinterpret_cast<T *>(packed + 2 * Shape::packed);
    const Item item = launch.items[blockIdx.x];
    const int row = static_cast<int>(blockIdx.y) * Shape::rows, step = static_cast<int>(gridDim.z), d = launch.d;
    if (stopped(launch) || row >= item.n)
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    int j = static_cast<int>(blockIdx.z);
    if (j >= mixture.k)
        return;
    copy_component<T, Tiles>(mixture, j, packed);
    copy_rows<Shape::rows, 8 * Tiles, Shape::stride, Shape::threads>(x, launch.values + (item.first + row) * d, d,
                                                                     item.n - row, d);
    __pipeline_commit();
    const int lane = static_cast<int>(threadIdx.x) % 32, own = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
    for (int turn = 0; j < mixture.k; j += step, turn ^= 1) {
        __pipeline_wait_prior(0);
        __syncthreads(); // the component is there, and the one before it is done with
        if (j + step < mixture.k)
            copy_component<T, Tiles>(mixture, j + step, packed + (turn ^ 1) * Shape::packed);
        double square[2];
        squares<T, Tiles>(x + own * Shape::stride + lane % 4, packed + turn * Shape::packed, square);
        double *out = launch.workspace + item.shares + std::int64_t{j} * item.n + row + own;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            square[half] += __shfl_xor_sync(~0u, square[half], 1);
            square[half] += __shfl_xor_sync(~0u, square[half], 2);
            if (lane % 4 == 0 && row + own + 8 * half < item.n)
                out[8 * half] = fma(-0.5, square[half], mixture.constants[j]);
        }
    }
}

// Calls use(tiles) with the kernel's number of eights for d features.
template <typename Use>
void with_tiles(std::int64_t d, Use &&use)
{
    const auto try_one = [&](auto tiles) {
        if (tiles_of(d) == decltype(tiles)::value)
            use(tiles);
    };
    try_one(std::integral_constant<int, 4>());
    try_one(std::integral_constant<int, 5>());
    try_one(std::integral_constant<int, 6>());
    try_one(std::integral_constant<int, 8>());
    try_one(std::integral_constant<int, 12>());
    try_one(std::integral_constant<int, 16>());
}

} // namespace

std::int64_t packed_count(std::int64_t k, std::int64_t d)
{
    const int tiles = tiles_of(d);
    return tiles == 0 ? 0 : k * packed_values(tiles);
}

void pack_factors(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                  cudaStream_t stream)
{
    const int tiles = tiles_of(d);
    if (tiles == 0)
        return;
    const dim3 grid(static_cast<unsigned>(n_problems), std::min(most_blocks, static_cast<unsigned>(most_k)));
    pack_kernel<<<grid, 128, 0, stream>>>(mixtures, static_cast<int>(d), tiles);
    launched("pack_kernel");
}

template <typename T>
bool packed_densities(const Context &context, const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    bool done = false;
    with_tiles(launch.d, [&](auto count) {
        constexpr int tiles = decltype(count)::value;
        using Shape = FullDensity<T, tiles>;
        if (Shape::bytes > context.facts.shared_bytes_per_block)
            return;
        const auto rows = static_cast<unsigned>((extent.most_rows + Shape::rows - 1) / Shape::rows);
        // Blocks share the components where there are few of them.
        const unsigned wanted = static_cast<unsigned>(context.facts.multiprocessors) * 8 / (extent.n_items * rows) + 1;
        const dim3 grid(extent.n_items, rows, std::min(wanted, static_cast<unsigned>(extent.most_k)));
        checked("cudaFuncSetAttribute",
                [&] { return allow_shared_memory(full_density_kernel<T, tiles>, Shape::bytes); });
        full_density_kernel<T, tiles><<<grid, Shape::threads, Shape::bytes, stream>>>(launch);
        launched("full_density_kernel");
        done = true;
    });
    return done;
}

template bool packed_densities<float>(const Context &, const Launch<float> &, const Extent &, cudaStream_t);
template bool packed_densities<double>(const Context &, const Launch<double> &, const Extent &, cudaStream_t);

} // namespace pgkm::cuda::mixture
