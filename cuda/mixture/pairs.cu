// pairs.cu (mixture) - responsibilities and sums of the pairs of a row and a component that count (sparse.hpp).
//
// Data: a warp sees to a row, its lanes to features, one candidate after the other; a block has 64 rows and
// adds up their log-likelihood. Sums: pairs sorted by component; a block takes one part of a component's pairs, a
// thread a feature (or, of few features, a feature of every n-th pair). Threads: each block owns its part of one copy
// of the sums. Error: float64, exponentials of float32 rows too; by differences from the means.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <cuda_bf16.h>

#include "mixture/sparse.hpp"
#include "device/carver.cuh"

namespace pgkm::cuda::mixture {
namespace {

constexpr int row_threads = 256;
constexpr int block_rows = 64; // of a block of share_kernel

// The log density of component j at a row; all lanes of the warp.
template <typename T>
__device__ double log_density(const SparseLaunch<T> &launch, const MixtureView &mixture, const T *row, int j)
{
    const int lane = static_cast<int>(threadIdx.x) % 32, d = launch.d;
    const double *mean = mixture.means + std::int64_t{j} * d;
    double square = 0.0;
#pragma unroll 4
    for (int f = lane; f < d; f += 32) {
        const double z = (static_cast<double>(row[f]) - mean[f]) * launch.factor(j, f);
        square = fma(z, z, square);
    }
    return fma(-0.5, sum_lanes(square), mixture.constants[j]);
}

// The pairs of a row, and its log-likelihood.
template <typename T>
__device__ double share_row(const SparseLaunch<T> &launch, const MixtureView &mixture, int row)
{
    const SparseArrays &arrays = launch.arrays;
    const int lane = static_cast<int>(threadIdx.x) % 32, first = arrays.offsets[row], count = arrays.counts[row];
    const T *values = launch.values + std::int64_t{row} * launch.d;
    double largest = -INFINITY;
    for (int begin = 0; begin < count; begin += 32) {
        int label = begin + lane;
        if (count <= list_size && label < count)
            label = arrays.lists[std::int64_t{row} * list_size + label];
        double own = 0.0;
        for (int i = 0; i < min(32, count - begin); ++i) {
            const double density = log_density(launch, mixture, values, __shfl_sync(~0u, label, i));
            largest = fmax(largest, density);
            own = lane == i ? density : own;
        }
        if (begin + lane < count) {
            const int at = first + begin + lane;
            arrays.keys[0][at] = label;
            arrays.rows[0][at] = at;
            arrays.row_of[at] = row;
            arrays.shares[at] = own;
        }
    }
    if (count == 1) { // as below, where exp(0) is 1 and log(1) 0
        if (lane == 0)
            arrays.shares[first] = isfinite(largest) ? 1.0 : NAN;
        return largest;
    }
    double sum = 0.0;
    for (int i = lane; i < count; i += 32)
        sum += arrays.shares[first + i] = exp(arrays.shares[first + i] - largest);
    sum = sum_lanes(sum);
    for (int i = lane; i < count; i += 32)
        arrays.shares[first + i] /= sum;
    return largest + log(sum);
}

template <typename T>
__global__ void __launch_bounds__(row_threads) share_kernel(SparseLaunch<T> launch)
{
    constexpr int at_once = row_threads / 32;
    __shared__ double parts[at_once];
    if (stopped(launch.stop))
        return;
    const int way = static_cast<int>(threadIdx.x) / 32;
    const MixtureView &mixture = *launch.mixture;
    double likelihood = 0.0;
    for (int i = way; i < block_rows; i += at_once) {
        const std::int64_t row = std::int64_t{blockIdx.x} * block_rows + i;
        if (row < launch.n)
            likelihood += share_row(launch, mixture, static_cast<int>(row));
    }
    parts[way] = likelihood;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int other = 1; other < at_once; ++other)
        likelihood += parts[other];
    launch.arrays.likelihoods[blockIdx.x] = likelihood;
}

constexpr int sum_threads = 128;

// The first pair of sorted ones whose component is at least j.
__device__ int lower_bound(const std::int32_t *keys, int count, int j)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (keys[middle] < j)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Joins what threads with the same number modulo `lanes` have: the first ones get it.
__device__ double join_parts(double value, int lanes, double *parts)
{
    __syncthreads();
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x) + lanes; i < sum_threads && static_cast<int>(threadIdx.x) < lanes;
         i += lanes)
        value += parts[i];
    return value;
}

// Blocks (component, copy of the sums). lanes: threads side by side for features, a power of two.
template <typename T>
__global__ void __launch_bounds__(sum_threads) pair_sums_kernel(SparseLaunch<T> launch, int pairs, int slots, int lanes)
{
    __shared__ int bounds[2], rows[sum_threads];
    __shared__ double shares[sum_threads], parts[sum_threads];
    if (stopped(launch.stop))
        return;
    const SparseArrays &arrays = launch.arrays;
    const MixtureView &mixture = *launch.mixture;
    const int j = static_cast<int>(blockIdx.x), slot = static_cast<int>(blockIdx.y), d = launch.d;
    if (threadIdx.x < 2)
        bounds[threadIdx.x] = lower_bound(arrays.keys[1], pairs, j + static_cast<int>(threadIdx.x));
    __syncthreads();
    const std::int64_t count = bounds[1] - bounds[0];
    const int begin = bounds[0] + static_cast<int>(count * slot / slots),
              end = bounds[0] + static_cast<int>(count * (slot + 1) / slots);
    double *out = mixture.sums + slot * mixture.layout.values();
    const int lane = static_cast<int>(threadIdx.x) % lanes, way = static_cast<int>(threadIdx.x) / lanes;
    double mass = 0.0;
    for (int feature = 0; feature < d && begin < end; feature += lanes) {
        const int f = feature + lane;
        const double centre = f >= d               ? 0.0
                              : launch.from_origin ? mixture.origin[f]
                                                   : mixture.means[std::int64_t{j} * d + f];
        double first = 0.0, second = 0.0;
        for (int batch = begin; batch < end; batch += sum_threads) {
            __syncthreads();
            const int own = batch + static_cast<int>(threadIdx.x), in_batch = min(sum_threads, end - batch);
            if (own < end) {
                const int pair = arrays.rows[1][own];
                rows[threadIdx.x] = arrays.row_of[pair];
                shares[threadIdx.x] = arrays.shares[pair];
                mass += feature == 0 ? shares[threadIdx.x] : 0.0;
            }
            __syncthreads();
#pragma unroll 8
            for (int i = way; i < in_batch; i += sum_threads / lanes) {
                const double x = f < d ? static_cast<double>(launch.values[std::int64_t{rows[i]} * d + f]) : centre;
                const double product = shares[i] * (x - centre);
                first += product;
                second = fma(product, x - centre, second);
            }
        }
        first = join_parts(first, lanes, parts);
        second = join_parts(second, lanes, parts);
        if (way == 0 && f < d) {
            out[mixture.layout.first(j) + f] += first;
            out[mixture.layout.second(j) + f] += second;
        }
    }
    mass = join_parts(mass, 1, parts);
    if (threadIdx.x == 0)
        out[j] += mass;
    if (j != 0 || slot != 0)
        return;
    double likelihood = 0.0;
    for (int i = static_cast<int>(threadIdx.x); i < (launch.n + block_rows - 1) / block_rows; i += sum_threads)
        likelihood += arrays.likelihoods[i];
    likelihood = join_parts(likelihood, 1, parts);
    if (threadIdx.x == 0)
        out[mixture.k] += likelihood;
}

// What the filter of candidates.cu makes of a mixture. Terms of the error bound are those that candidates.cu derives;
// they are found in float64 and rounded to float32, far less than the bound has to spare.

// A warp for each feature: the power of two near the components' mean factor, by their exponents.
template <typename T>
__global__ void __launch_bounds__(128) scales_kernel(SparseLaunch<T> launch, float *scales, int features)
{
    const int k = launch.mixture->k, d = launch.d;
    const int f = static_cast<int>(blockIdx.x) * 4 + static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (f >= features)
        return;
    double sum = 0.0;
    for (int j = lane; j < k && f < d; j += 32)
        sum += ilogb(launch.factor(j, f));
    sum = sum_lanes(sum);
    if (lane == 0)
        scales[f] = f < d ? ldexpf(1.0f, max(-100, min(100, static_cast<int>(sum / k)))) : 0.0f;
}

// A warp for each component.
template <typename T>
__global__ void __launch_bounds__(128) filter_kernel(SparseLaunch<T> launch)
{
    const MixtureView &mixture = *launch.mixture;
    const int d = launch.d;
    const bool diagonal = launch.diagonal;
    float *const filter = launch.arrays.filter;
    const FilterLayout layout(mixture.k, d, diagonal);
    const std::int64_t j = blockIdx.x * 4 + threadIdx.x / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (j >= layout.components)
        return;
    const float *scales = filter + layout.scales();
    auto *linear = reinterpret_cast<__nv_bfloat16 *>(filter) + j * layout.features;
    auto *square = linear + layout.components * layout.features;
    double constant = 0.0, linear_norm = 0.0, square_norm = 0.0;
    for (int f = lane; f < layout.features; f += 32) {
        const bool inside = j < mixture.k && f < d;
        const double w = inside ? launch.factor(j, f) : 0.0;
        const double m = inside ? mixture.means[j * d + f] - mixture.origin[f] : 0.0;
        const double inverse = inside ? 1.0 / static_cast<double>(scales[f]) : 0.0;
        const double a = w * m * (w * inverse), b = -0.5 * (w * inverse) * (w * inverse);
        linear[f] = __float2bfloat16_rn(static_cast<float>(a));
        linear_norm += a * a;
        if (diagonal) {
            square[f] = __float2bfloat16_rn(static_cast<float>(b));
            square_norm += b * b;
        }
        constant -= 0.5 * (w * m) * (w * m);
    }
    constant = sum_lanes(constant);
    linear_norm = sum_lanes(linear_norm);
    square_norm = sum_lanes(square_norm);
    if (lane != 0)
        return;
    const double of_steps = static_cast<double>(layout.runs * layout.features / 16) * 0x1p-18;
    float4 terms = make_float4(-INFINITY, 0.0f, 0.0f, 0.0f);
    if (j < mixture.k) {
        const double w = diagonal ? 0.0 : launch.factor(j, 0) / static_cast<double>(scales[0]);
        constant += mixture.constants[j];
        terms.x = static_cast<float>(constant);
        terms.y = static_cast<float>((2.1 * 0x1p-9 + of_steps) * sqrt(linear_norm));
        terms.z = static_cast<float>(diagonal ? (4.1 * 0x1p-9 + of_steps) * sqrt(square_norm) : -0.5 * w * w);
        terms.w = static_cast<float>(0x1p-22 * fabs(constant));
    }
    reinterpret_cast<float4 *>(filter + layout.terms())[j] = terms;
}

template <typename T>
void prepare_filter(const SparseLaunch<T> &launch, std::int64_t k, cudaStream_t stream)
{
    const FilterLayout layout(k, launch.d, launch.diagonal);
    enqueue(scales_kernel<T>, layout.features / 4, 128, 0, stream, launch, launch.arrays.filter + layout.scales(),
            static_cast<int>(layout.features));
    enqueue(filter_kernel<T>, layout.components / 4, 128, 0, stream, launch);
}

int bits_of(std::int64_t k)
{
    int bits = 1;
    while ((std::int64_t{1} << bits) < k)
        ++bits;
    return bits;
}

cudaError_t sort(const SparseArrays &arrays, std::size_t &bytes, int pairs, int bits, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(arrays.storage, bytes, arrays.keys[0], arrays.keys[1], arrays.rows[0],
                                           arrays.rows[1], pairs, 0, bits, stream);
}

cudaError_t scan(const SparseArrays &arrays, std::size_t &bytes, int rows, cudaStream_t stream)
{
    return cub::DeviceScan::ExclusiveSum(arrays.storage, bytes, arrays.counts, arrays.offsets, rows + 1, stream);
}

} // namespace

template <typename T>
Sparse<T>::Sparse(Context &context, const Task &task, std::int64_t d)
    : context_(context), d_(d), k_(task.mixture->k), diagonal_(task.mixture->covariance_type == PGKM_COVARIANCE_DIAG),
      from_origin_(task.way == Way::products), pairs_per_row_(std::clamp<std::int64_t>(k_ / 64, 3, 16))
{
}

template <typename T>
std::size_t Sparse<T>::place(char *workspace, std::int64_t rows, SparseArrays &arrays)
{
    const std::int64_t pairs = rows * pairs_per_row_;
    Carver carver(workspace);
    const auto size = [](std::int64_t count) { return static_cast<std::size_t>(count); };
    arrays.filter = carver.take<float>(size(FilterLayout(k_, d_, diagonal_).values()));
    arrays.lists = carver.take<std::uint16_t>(size(rows * list_size));
    arrays.counts = carver.take<std::int32_t>(size(rows + 1));
    arrays.offsets = carver.take<std::int32_t>(size(rows + 1));
    arrays.likelihoods = carver.take<double>(size(rows / block_rows + 1));
    for (int i = 0; i < 2; ++i) {
        arrays.keys[i] = carver.take<std::int32_t>(size(pairs));
        arrays.rows[i] = carver.take<std::int32_t>(size(pairs));
    }
    arrays.row_of = carver.take<std::int32_t>(size(pairs));
    arrays.shares = carver.take<double>(size(pairs));
    std::size_t for_sort = 0, for_scan = 0;
    arrays.storage = nullptr;
    checked("cub::DeviceRadixSort",
            [&] { return sort(arrays, for_sort, static_cast<int>(pairs), bits_of(k_), context_.compute.get()); });
    checked("cub::DeviceScan", [&] { return scan(arrays, for_scan, static_cast<int>(rows), context_.compute.get()); });
    arrays.storage_bytes = std::max(for_sort, for_scan);
    arrays.storage = carver.take<char>(arrays.storage_bytes);
    return carver.used();
}

template <typename T>
std::size_t Sparse<T>::plan(std::int64_t rows, std::uint64_t room)
{
    SparseArrays arrays = {};
    chunk_ = std::min(rows, ((std::int64_t{1} << 31) - 1) / k_); // offsets are 32 bits, also where all pairs count
    for (; chunk_ >= least_rows; chunk_ /= 2) {
        const std::size_t bytes = place(nullptr, chunk_, arrays);
        if (bytes <= room)
            return bytes;
    }
    return 0;
}

template <typename T>
std::int64_t Sparse<T>::add(const T *values, std::int64_t n, const MixtureView *device_view, const MixtureView &view,
                            char *workspace, std::int32_t *stop)
{
    const cudaStream_t stream = context_.compute.get();
    const std::int64_t rows = std::min({n, chunk_, next_});
    SparseLaunch<T> launch = {values,
                              static_cast<std::int32_t>(rows),
                              static_cast<std::int32_t>(d_),
                              device_view,
                              diagonal_,
                              from_origin_,
                              {},
                              stop};
    place(workspace, chunk_, launch.arrays);
    if (prepared_ != device_view)
        prepare_filter(launch, k_, stream);
    prepared_ = device_view;
    context_.poll();
    find_candidates(launch, stream);
    std::size_t bytes = launch.arrays.storage_bytes;
    checked("cub::DeviceScan", [&] { return scan(launch.arrays, bytes, static_cast<int>(rows), stream); });
    context_.wait(stream,
                  stop); // a copy to memory that is not page-locked would wait without a look at the cancel flag
    std::int32_t pairs = 0;
    // counts[rows] is any number: the last offset is the sum of those before.
    enqueue_copy(&pairs, launch.arrays.offsets + rows, 1, stream, cudaMemcpyDeviceToHost);
    context_.wait(stream, stop);
    if (pairs > rows * pairs_per_row_)
        return 0;
    enqueue(share_kernel<T>, (rows + block_rows - 1) / block_rows, row_threads, 0, stream, launch);
    bytes = launch.arrays.storage_bytes;
    checked("cub::DeviceRadixSort", [&] { return sort(launch.arrays, bytes, pairs, bits_of(k_), stream); });
    int lanes = 8;
    while (lanes < sum_threads && lanes < d_)
        lanes *= 2;
    enqueue(pair_sums_kernel<T>, {k_, view.slots}, sum_threads, 0, stream, launch, pairs, view.slots, lanes);
    next_ = chunk_;
    return rows;
}

template class Sparse<float>;
template class Sparse<double>;

} // namespace pgkm::cuda::mixture
