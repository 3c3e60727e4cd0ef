// thread_tables.cu - every thread has a table of sums of its own and takes whole rows; a block's tables are merged at
// the end: of features "cluster merge", of masses "partitioned private" (Lutz et al. 2018; Ma, Agrawal 2009).
//
// Entry e of thread t lies at e x threads + t, so that lanes use banks of their own, and no two threads add to the same
// sum. Tables lie in shared memory as long as those of a warp fit it, else in global memory. To use: a handful of sums.
#include "papers/copies.cuh"
#include "device/warp.cuh"

namespace pgkm::cuda {
namespace {

// tables: those of all blocks; nullptr: they lie in shared memory.
template <typename What, typename Value, typename T>
__global__ void tables_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *sums,
                              Value *tables)
{
    if (block_stopped(control))
        return;
    extern __shared__ std::int64_t shared_tables[];
    const int threads = static_cast<int>(blockDim.x), width = What::width(view);
    const std::int64_t entries = std::int64_t{view.k} * width;
    Value *of_block = tables == nullptr ? reinterpret_cast<Value *>(shared_tables)
                                        : tables + std::int64_t{blockIdx.x} * entries * threads;
    Value *own = of_block + threadIdx.x;
    for (std::int64_t e = 0; e < entries; ++e)
        own[e * threads] = 0;
    const std::int64_t share = (view.n + gridDim.x - 1) / gridDim.x;
    const std::int64_t first = blockIdx.x * share, last = min(first + share, view.n);
    for (std::int64_t row = first + threadIdx.x; row < last; row += threads) {
        Value *of_cluster = own + std::int64_t{labels[row]} * width * threads;
        for (int f = 0; f < width; ++f)
            of_cluster[std::int64_t{f} * threads] += static_cast<Value>(What::integer(view, row, f));
    }
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x & 31);
    for (std::int64_t e = threadIdx.x / 32; e < entries; e += threads / 32) { // a warp takes an entry of all threads
        std::int64_t sum = 0;
        for (int t = lane; t < threads; t += 32)
            sum += of_block[e * threads + t];
        sum = sum_lanes(sum);
        if (lane == 0 && sum != 0)
            add_integer(sums + 2 * e, sum);
    }
}

template <typename What, typename Value, typename T>
void sum_in(const Both<Sum> &otherwise, const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
            std::int64_t *sums)
{
    constexpr std::int64_t values_at_once = 1'000'000'000; // of one launch
    const std::int64_t entries = std::int64_t{view.k} * What::width(view);
    const std::int64_t room = stage.context.facts.shared_bytes_per_block / 2;
    const auto bytes = [=](int threads) { return entries * threads * static_cast<std::int64_t>(sizeof(Value)); };
    int threads = 256;
    while (threads > 32 && bytes(threads) > room)
        threads /= 2;
    const bool shared = bytes(threads) <= room;
    const std::int64_t least = (view.n + partial_sum_length - 1) / partial_sum_length;
    int blocks = static_cast<int>(
        std::max<std::int64_t>(least, blocks_for(view.n, threads * 4, stage.context.facts.multiprocessors * 8)));
    Value *tables = nullptr;
    if (!shared) {
        const Copies copies =
            make_copies(stage.context, bytes(threads) / 8, blocks, std::int64_t{256} << 20, stage.stream);
        if (copies.count == 0)
            return otherwise(stage, view, labels, sums);
        blocks = copies.count;
        tables = reinterpret_cast<Value *>(copies.sums);
    }
    const std::size_t dynamic = shared ? static_cast<std::size_t>(bytes(threads)) : 0;
    const auto kernel = tables_kernel<What, Value, T>;
    const std::int64_t step = std::min(std::int64_t{blocks} * partial_sum_length,
                                       std::max<std::int64_t>(values_at_once / What::width(view), 1024));
    for (std::int64_t first = 0; first < view.n; first += step) {
        enqueue(kernel, blocks, threads, dynamic, stage.stream, slice(view, first, std::min(step, view.n - first)),
                stage.control, labels + first, sums, tables);
    }
}

template <typename T>
void sum_features(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *sums)
{
    sum_in<Features, std::int64_t>(sum_features_atomic, stage, view, labels, sums);
}

template <typename T>
void sum_masses(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *sums)
{
    if (view.weights == nullptr)
        return sum_in<Masses, std::int32_t>(sum_masses_global_atomic, stage, view, labels, sums);
    sum_in<Masses, std::int64_t>(sum_masses_global_atomic, stage, view, labels, sums);
}

} // namespace

const Both<Sum> sum_features_cluster_merge = {sum_features<float>, sum_features<double>};
const Both<Sum> sum_masses_partitioned_private = {sum_masses<float>, sum_masses<double>};

} // namespace pgkm::cuda
