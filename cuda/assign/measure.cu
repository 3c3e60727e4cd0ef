// measure.cu - exact distances of rows to the centroids of their labels, and sums of them, for any shape.
//
// A row a thread. Up to 256 clusters, a block adds limbs and counts in shared memory, and sends them to the 64-bit sums
// after every 252 rows, so that 32 bits suffice; with more clusters rows go to the 64-bit sums at once. Distances are
// the contract's.
#include "assign/measure.hpp"

#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int rows_per_round = 252; // a limb is at most 2^23: 255 of them fit 32 bits

struct SquareLimbs {
    std::int32_t limb[4];
};

// The 92-bit integer of a squared distance in four limbs: the contract's two, halved.
__device__ SquareLimbs square_limbs(double weighted, double scale)
{
    const Limbs limbs = quantise_square(weighted, scale);
    const Split hi = split_limbs(limbs.hi), lo = split_limbs(limbs.lo);
    return {{hi.hi, hi.lo, lo.hi, lo.lo}};
}

template <typename T, bool Shared>
__global__ void measure_kernel(MeasureArguments<T> a)
{
    if (block_stopped(a.control))
        return;
    extern __shared__ std::int32_t own[]; // k x measure_sums
    const View<T> &view = a.view;
    const int n_sums = view.k * measure_sums;
    if (Shared) {
        for (int i = threadIdx.x; i < n_sums; i += threads)
            own[i] = 0;
        __syncthreads();
    }
    for (std::int64_t start = std::int64_t{blockIdx.x} * rows_per_round; start < view.n;
         start += std::int64_t{gridDim.x} * rows_per_round) {
        const std::int64_t row = start + threadIdx.x;
        if (threadIdx.x < rows_per_round && row < view.n) {
            const int label = a.labels[row];
            const double distance =
                exact_distance(view.values + row * view.d, view.centroids + std::int64_t{label} * view.d, view.d);
            if (a.distances != nullptr)
                a.distances[row] = distance;
            if (a.sums != nullptr) {
                const SquareLimbs square =
                    square_limbs(view.weights == nullptr ? distance : view.weights[row] * distance,
                                 power_of_two(a.distance_exponent));
                for (int i = 0; i < 4; ++i)
                    if (Shared)
                        atomicAdd(own + label * measure_sums + i, square.limb[i]);
                    else
                        add64(a.sums + std::int64_t{label} * measure_sums + i, square.limb[i]);
                if (Shared)
                    atomicAdd(own + label * measure_sums + 4, 1);
                else
                    add64(a.sums + std::int64_t{label} * measure_sums + 4, 1);
            }
        }
        if (!Shared)
            continue;
        __syncthreads();
        for (int i = threadIdx.x; i < n_sums; i += threads) {
            if (own[i] != 0)
                add64(a.sums + i, own[i]);
            own[i] = 0;
        }
        __syncthreads();
    }
}

} // namespace

template <typename T>
void measure(const MeasureArguments<T> &arguments, int multiprocessors, int shared_bytes, cudaStream_t stream)
{
    const int blocks = blocks_for(arguments.view.n, rows_per_round, multiprocessors * 8);
    const long long bytes = 4LL * arguments.view.k * measure_sums;
    // Beyond some hundred clusters clearing the block's sums costs more than the atomics.
    if (arguments.sums != nullptr && arguments.view.k <= 256 && bytes <= shared_bytes)
        measure_kernel<T, true><<<blocks, threads, static_cast<std::size_t>(bytes), stream>>>(arguments);
    else
        measure_kernel<T, false><<<blocks, threads, 0, stream>>>(arguments);
    launched("measure_kernel");
}

template void measure<float>(const MeasureArguments<float> &, int, int, cudaStream_t);
template void measure<double>(const MeasureArguments<double> &, int, int, cudaStream_t);

} // namespace pgkm::cuda
