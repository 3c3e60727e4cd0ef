// fused_diagonal.cu - diag and spherical in one kernel: warps that work alone, and their sums added up.
#include "mixture/diagonal_warp.cuh"
#include "mixture/fused.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / 32;
constexpr int per_multiprocessor = 3;

// One value of every warp, added up in the warps' order.
__device__ double over_warps(double value, double *room)
{
    __syncthreads();
    room[threadIdx.x] = value;
    __syncthreads();
    double sum = 0.0;
    for (int w = 0; w < warps; ++w)
        sum += room[w * 32 + static_cast<int>(threadIdx.x) % 32];
    return sum;
}

// The sums of all warps into the item's copy.
template <int Components, int Features>
__device__ void store(const DiagonalSums<Components, Features> &sums, const MixtureView &mixture, int slot, int d,
                      double *room)
{
    double *out = mixture.sums + slot * mixture.layout.values();
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const bool writes = threadIdx.x < 32;
#pragma unroll
    for (int m = 0; m < Components; ++m) {
#pragma unroll
        for (int s = 0; s < 2 * Features; ++s)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const double sum = over_warps(sums.product[m][s][i], room);
                const int j = 16 * m + g + i / 2 * 8, f = s % Features * 8 + 2 * t + i % 2;
                if (writes && j < mixture.k && f < d)
                    out[(s < Features ? mixture.layout.first(j) : mixture.layout.second(j)) + f] += sum;
            }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            double mass = over_warps(sums.mass[m][half], room);
            mass += __shfl_xor_sync(~0u, mass, 1);
            mass += __shfl_xor_sync(~0u, mass, 2);
            const int j = 16 * m + g + 8 * half;
            if (writes && t == 0 && j < mixture.k)
                out[j] += mass;
        }
    }
    double likelihood = over_warps(sums.log_likelihood, room);
    likelihood += __shfl_xor_sync(~0u, likelihood, 1);
    likelihood += __shfl_xor_sync(~0u, likelihood, 2);
    if (threadIdx.x == 0)
        out[mixture.k] += likelihood;
}

template <typename T, int Components, int Features>
__global__ void __launch_bounds__(threads, per_multiprocessor) fused_diagonal_kernel(Launch<T> launch)
{
    __shared__ double tiles[warps][group_rows * conflict_free(16 * Features)];
    __shared__ double room[threads];
    constexpr int coefficient_count = Components * Features * 256 + 16 * Components;
    __shared__ alignas(16) double coefficients[coefficient_count];
    if (stopped(launch))
        return;
    const Item item = launch.items[blockIdx.x];
    const MixtureView mixture = launch.mixtures[item.problem];
    for (int i = static_cast<int>(threadIdx.x); i < coefficient_count; i += threads)
        coefficients[i] = mixture.coefficients[i];
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / 32;
    DiagonalSums<Components, Features> sums;
    DiagonalWarp<T, Components, Features>(launch, item, mixture, coefficients, tiles[warp]).run(warp, warps, sums);
    store(sums, mixture, item.slot, launch.d, room);
}

} // namespace

int warp_blocks()
{
    return per_multiprocessor;
}

template <typename T>
void fused_diagonal(const Launch<T> &launch, unsigned n_items, int k, cudaStream_t stream)
{
    const DiagonalShape shape(k, launch.d);
    if (shape.tiled)
        return tiled_diagonal(launch, n_items, shape, stream);
    const auto run = [&](auto kernel) { kernel<<<n_items, threads, 0, stream>>>(launch); };
    if (shape.components == 2)
        run(shape.features == 1 ? fused_diagonal_kernel<T, 2, 1> : fused_diagonal_kernel<T, 2, 2>);
    else
        run(shape.features == 1   ? fused_diagonal_kernel<T, 1, 1>
            : shape.features == 2 ? fused_diagonal_kernel<T, 1, 2>
            : shape.features == 3 ? fused_diagonal_kernel<T, 1, 3>
                                  : fused_diagonal_kernel<T, 1, 4>);
    launched("fused_diagonal_kernel");
}

template void fused_diagonal<float>(const Launch<float> &, unsigned, int, cudaStream_t);
template void fused_diagonal<double>(const Launch<double> &, unsigned, int, cudaStream_t);

} // namespace pgkm::cuda::mixture
