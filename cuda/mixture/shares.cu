// shares.cu (mixture) - responsibilities times weights, and the sums over rows of them alone, for any shape.
//
// Data: the workspace of items.cuh, component by component, so that neighbouring threads read neighbouring rows.
// Threads: 1, 8 or 32 threads see to a row, by the number of components, and meet at two barriers; a warp sums one
// component's responsibilities.
// Error: float64; exp() of differences from the largest log density.
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {
namespace {

constexpr int threads = 256;

// The best component of a row among those that some threads have seen.
struct Best {
    double density;
    int label;

    // The larger; of equals the one of the lower label.
    __device__ void join(const Best &other)
    {
        if (other.density > density || (other.density == density && other.label < label))
            *this = other;
    }
};

// `Ways` threads see to a row, each to every Ways-th component; threads of a warp to rows side by side.
template <typename T, int Ways>
__global__ void __launch_bounds__(threads) normalise_kernel(Launch<T> launch)
{
    constexpr int rows = threads / Ways;
    __shared__ Best bests[Ways][rows];
    __shared__ double sums[Ways][rows];
    const Item item = launch.items[blockIdx.x];
    const int at = static_cast<int>(threadIdx.x) % rows, way = static_cast<int>(threadIdx.x) / rows;
    const std::int64_t i = std::int64_t{blockIdx.y} * rows + at, n = item.n;
    if (stopped(launch.stop) || std::int64_t{blockIdx.y} * rows >= n)
        return;
    const int k = i < n ? launch.mixtures[item.problem].k : 0;
    double *shares = launch.workspace + item.shares + i;
    Best best = {-INFINITY, way};
    for (int j = way; j < k; j += Ways)
        if (shares[j * n] > best.density)
            best = {shares[j * n], j};
    bests[way][at] = best;
    __syncthreads();
    for (int w = 0; w < Ways; ++w)
        best.join(bests[w][at]);
    double sum = 0.0;
    for (int j = way; j < k; j += Ways)
        sum += shares[j * n] = exp(shares[j * n] - best.density);
    sums[way][at] = sum;
    __syncthreads();
    sum = 0.0;
    for (int w = 0; w < Ways; ++w)
        sum += sums[w][at];
    const double weight = launch.weights == nullptr || i >= n ? 1.0 : launch.weights[item.first + i];
    const double inverse = weight / sum;
    for (int j = way; j < k; j += Ways)
        shares[j * n] *= inverse;
    if (way != 0 || i >= n)
        return;
    shares[k * n] = weight * (best.density + log(sum));
    if (launch.labels != nullptr)
        launch.labels[item.label + i] = best.label;
}

template <typename T>
__global__ void __launch_bounds__(threads) given_kernel(Launch<T> launch)
{
    const Item item = launch.items[blockIdx.x];
    const std::int64_t i = std::int64_t{blockIdx.y} * threads + threadIdx.x, n = item.n;
    if (stopped(launch.stop) || i >= n)
        return;
    const int k = launch.mixtures[item.problem].k, label = launch.labels[item.label + i];
    const double weight = launch.weights == nullptr ? 1.0 : launch.weights[item.first + i];
    double *shares = launch.workspace + item.shares + i;
    for (int j = 0; j < k; ++j)
        shares[j * n] = j == label ? weight : 0.0;
    shares[k * n] = 0.0;
}

// A warp for each item and row of its workspace, which are the first values of the sums.
template <typename T>
__global__ void __launch_bounds__(threads) share_sums_kernel(Launch<T> launch, bool masses)
{
    const Item item = launch.items[blockIdx.x];
    if (stopped(launch.stop))
        return;
    const MixtureView mixture = launch.mixtures[item.problem];
    const int warp = static_cast<int>(blockIdx.y * (threads / 32) + threadIdx.x / 32), lane = threadIdx.x % 32;
    const int step = static_cast<int>(gridDim.y) * (threads / 32);
    for (int j = masses ? warp : mixture.k + warp; j <= mixture.k; j += step) {
        const double *values = launch.workspace + item.shares + std::int64_t{j} * item.n;
        double sum = 0.0;
#pragma unroll 4
        for (int i = lane; i < item.n; i += 32)
            sum += values[i];
        sum = sum_lanes(sum);
        if (lane == 0)
            mixture.sums[item.slot * mixture.layout.values() + j] += sum;
    }
}

// A thread adds up every eighth copy of a value, then one thread those eight.
constexpr int combine_ways = 8;
constexpr int combine_values = threads / combine_ways;

__global__ void __launch_bounds__(threads) combine_kernel(const MixtureView *mixtures, std::int64_t n_problems)
{
    __shared__ double parts[combine_ways][combine_values];
    const int at = static_cast<int>(threadIdx.x) % combine_values, way = static_cast<int>(threadIdx.x) / combine_values;
    for (std::int64_t p = blockIdx.y; p < n_problems; p += gridDim.y) {
        const MixtureView mixture = mixtures[p];
        const std::int64_t i = std::int64_t{blockIdx.x} * combine_values + at, values = mixture.layout.values();
        double sum = 0.0;
#pragma unroll 4
        for (int slot = way; slot < mixture.slots && i < values; slot += combine_ways)
            sum += mixture.sums[slot * values + i];
        __syncthreads();
        parts[way][at] = sum;
        __syncthreads();
        if (way != 0 || i >= values)
            continue;
        for (int other = 1; other < combine_ways; ++other)
            sum += parts[other][at];
        mixture.results[i] = sum;
    }
}

dim3 grid_of(const Extent &extent, int rows)
{
    return dim3(extent.n_items, static_cast<unsigned>((extent.most_rows + rows - 1) / rows));
}

} // namespace

template <typename T>
void normalise(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    if (extent.most_k < 16)
        enqueue(normalise_kernel<T, 1>, grid_of(extent, threads), threads, 0, stream, launch);
    else if (extent.most_k < 512)
        enqueue(normalise_kernel<T, 8>, grid_of(extent, threads / 8), threads, 0, stream, launch);
    else
        enqueue(normalise_kernel<T, 32>, grid_of(extent, threads / 32), threads, 0, stream, launch);
}

template <typename T>
void given_shares(const Launch<T> &launch, const Extent &extent, cudaStream_t stream)
{
    enqueue(given_kernel<T>, grid_of(extent, threads), threads, 0, stream, launch);
}

template <typename T>
void share_sums(const Launch<T> &launch, const Extent &extent, bool masses, cudaStream_t stream)
{
    const int rows = masses ? extent.most_k + 1 : 1, warps = threads / 32;
    enqueue(share_sums_kernel<T>, {extent.n_items, std::min((rows + warps - 1) / warps, 65535)}, threads, 0, stream,
            launch, masses);
}

void combine_sums(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t most_values, cudaStream_t stream)
{
    enqueue(combine_kernel,
            {(most_values + combine_values - 1) / combine_values, std::min<std::int64_t>(n_problems, 65535)}, threads,
            0, stream, mixtures, n_problems);
}

#define PGKM_INSTANTIATE(T)                                                         \
    template void normalise<T>(const Launch<T> &, const Extent &, cudaStream_t);    \
    template void given_shares<T>(const Launch<T> &, const Extent &, cudaStream_t); \
    template void share_sums<T>(const Launch<T> &, const Extent &, bool, cudaStream_t)
PGKM_INSTANTIATE(float);
PGKM_INSTANTIATE(double);

} // namespace pgkm::cuda::mixture
