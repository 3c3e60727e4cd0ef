// update.cu - from integer sums to new centroids, as update_centroids() of src/backend/update.hpp does, for any shape.
//
// One warp per cluster. Divisions are independent and shared out to the lanes; the two sums
// whose order counts (norm, shift) run as one chain over values that the lanes exchange. The
// block that arrives last adds the clusters' shifts in order and decides. For few sums the kernels that make the sums
// update, too (fused/finish.cuh).
#include "sums/update.cuh"

#include "plugin/check.hpp"
#include "device/exact.cuh"

namespace pgkm::cuda {
namespace {

constexpr int update_warps = 4;

// The new centroid of cluster j in fresh; false when it keeps the old one (cosine, zero mean).
template <typename T>
__device__ bool make_centroid(const UpdateArguments<T> &a, int j, T *fresh)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const Int128 mass = sum_of(a.sums.masses, a.k, j, a.sums.weighted);
    const std::int64_t n_values = std::int64_t{a.k} * a.d;
    double square = 0.0;
    for (int first = 0; first < a.d; first += 32) {
        const int f = first + lane;
        T value = 0;
        if (f < a.d) {
            const std::int64_t at = std::int64_t{j} * a.d + f;
            const Int128 total = sum_of(a.sums.totals, n_values, at, a.sums.weighted);
            value = static_cast<T>(mean_of(total, mass, a.feature_exponent[f], a.weight_exponent));
            for (int part = 0; part < parts_of(a.sums.weighted) && !a.keeps_sums; ++part)
                reinterpret_cast<longlong2 *>(a.sums.totals)[part * n_values + at] = make_longlong2(0, 0);
            fresh[f] = value;
        }
        if (a.cosine)
            square = chain_squares(static_cast<double>(value), min(32, a.d - first), square);
    }
    if (!a.cosine)
        return true;
    if (square == 0.0)
        return false;
    const double norm = ::sqrt(square);
    for (int f = lane; f < a.d; f += 32)
        fresh[f] = static_cast<T>(static_cast<double>(fresh[f]) / norm);
    return true;
}

// Replaces the centroid of cluster j; notes its history and shift.
template <typename T>
__device__ void replace_centroid(const UpdateArguments<T> &a, int j)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int64_t base = std::int64_t{j} * a.d, set = std::int64_t{a.k} * a.d;
    T *fresh = a.fresh + base;
    const bool moved = make_centroid(a, j, fresh);
    double shift = 0.0;
    for (int first = 0; first < a.d; first += 32) {
        const int f = first + lane;
        double difference = 0.0;
        if (f < a.d) {
            T *current = a.centroids + base + f;
            const T old = *current;
            const T next = moved ? fresh[f] : old;
            current[2 * set] = current[set];
            current[set] = old;
            *current = next;
            difference = static_cast<double>(next) - static_cast<double>(old);
        }
        if (moved)
            shift = chain_squares(difference, min(32, a.d - first), shift);
    }
    if (lane == 0)
        a.shifts[j] = shift;
}

// The last block to arrive closes the iteration.
template <typename T>
__device__ void close_iteration(const UpdateArguments<T> &a)
{
    __shared__ double part[update_warps * 32];
    double shift = 0.0;
    for (int first = 0; first < a.k; first += blockDim.x) {
        const int j = first + static_cast<int>(threadIdx.x);
        part[threadIdx.x] = j < a.k ? __ldcg(a.shifts + j) : 0.0;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int i = 0; i < min(static_cast<int>(blockDim.x), a.k - first); ++i)
                shift += part[i];
        __syncthreads();
    }
    for (int j = threadIdx.x; j < 2 * a.k * parts_of(a.sums.weighted) && !a.keeps_sums; j += blockDim.x)
        a.sums.masses[j] = 0;
    if (threadIdx.x == 0)
        decide(a, shift);
}

// Any cluster without mass? Every thread of the block gets the answer.
__device__ bool block_finds_empty(const Accumulators &sums, int k)
{
    bool empty = false;
    for (int j = static_cast<int>(threadIdx.x); j < k; j += static_cast<int>(blockDim.x)) {
        std::int64_t any = 0;
        for (int i = 2 * j; i < 2 * k * parts_of(sums.weighted); i += 2 * k)
            any |= __ldcg(sums.masses + i) | __ldcg(sums.masses + i + 1);
        empty |= any == 0;
    }
    return __syncthreads_or(empty) != 0;
}

template <typename T>
__global__ void __launch_bounds__(update_warps * 32) update_kernel(UpdateArguments<T> a)
{
    bool halted = block_stopped(a.control); // one answer for the block: the flag may change while its threads read it
    if (!halted && block_finds_empty(a.sums, a.k)) {
        if (threadIdx.x == 0)
            stop_for_empty(a);
        halted = true;
    }
    if (!halted) {
        for (int j = blockIdx.x * update_warps + threadIdx.x / 32; j < a.k; j += gridDim.x * update_warps)
            replace_centroid(a, j);
        if (arrives_last(&a.control->arrived))
            close_iteration(a);
    }
    if (a.has_handle && blockIdx.x == 0 && threadIdx.x == 0 && halted)
        cudaGraphSetConditional(a.handle, 0);
}

} // namespace

template <typename T>
void update(const UpdateArguments<T> &arguments, cudaStream_t stream)
{
    const int blocks = std::min((arguments.k + update_warps - 1) / update_warps, 1024);
    update_kernel<<<blocks, update_warps * 32, 0, stream>>>(arguments);
    launched("update_kernel");
}

template void update<float>(const UpdateArguments<float> &, cudaStream_t);
template void update<double>(const UpdateArguments<double> &, cudaStream_t);

} // namespace pgkm::cuda
