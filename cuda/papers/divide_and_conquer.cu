// divide_and_conquer.cu - sums of M rows each, then of M sums each until at most M are left, which the CPU adds (Li,
// Zhao, Chu, Liu 2010, Algorithm 6). M is a multiple of the number of multiprocessors (merge_fan_in()).
//
// A thread takes one feature of the M rows of a part; the part's sums lie in global memory and no other thread adds to
// that feature of theirs. A later level adds in place: the first sums of M take the others. To use: to compare; the
// host waits in every iteration.
#include "papers/copies.cuh"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void parts_kernel(View<T> view, const Control *control, const std::int32_t *labels, Copies parts, int fan_in)
{
    if (stopped(control))
        return;
    const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, part = thread / view.d;
    const int f = static_cast<int>(thread - part * view.d);
    if (part >= parts.count)
        return;
    const Scaling<T> scale = scaling_of(view, f);
    std::int64_t *own = parts.sums + part * parts.n_sums + 2 * f;
    const std::int64_t last = min((part + 1) * fan_in, view.n);
    for (std::int64_t row = part * fan_in; row < last; ++row) {
        const Split limbs = split_limbs(feature_integer(view, row, f, scale, view.part));
        std::int64_t *sum = own + std::int64_t{labels[row]} * view.d * 2;
        sum[0] += limbs.hi;
        sum[1] += limbs.lo;
    }
}

// The sums that are left lie `stride` places apart; each fan_in of them become one, where the first of them lies.
__global__ void combine_kernel(const Control *control, Copies parts, std::int64_t stride, int fan_in)
{
    if (stopped(control))
        return;
    const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x, reach = stride * fan_in;
    const std::int64_t n_results = (parts.count + reach - 1) / reach * parts.n_sums;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n_results; i += threads) {
        const std::int64_t first = i / parts.n_sums * reach, last = min(first + reach, std::int64_t{parts.count});
        std::int64_t *sums = parts.sums + i % parts.n_sums;
        std::int64_t sum = 0;
        for (std::int64_t part = first; part < last; part += stride)
            sum += sums[part * parts.n_sums];
        sums[first * parts.n_sums] = sum;
    }
}

// Sums of the view's parts by levels, enqueued; returns how far those that are left lie apart.
template <typename T>
std::int64_t add_on_device(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, const Copies &parts,
                           int fan_in)
{
    const int most = stage.context.facts.multiprocessors * 16;
    const std::int64_t threads = std::int64_t{parts.count} * view.d;
    enqueue(parts_kernel<T>, (threads + 255) / 256, 256, 0, stage.stream, view, stage.control, labels, parts, fan_in);
    std::int64_t stride = 1;
    for (; parts.count > stride * fan_in; stride *= fan_in) {
        const std::int64_t results = (parts.count + stride * fan_in - 1) / (stride * fan_in) * parts.n_sums;
        enqueue(combine_kernel, blocks_for(results, 256, most), 256, 0, stage.stream, stage.control, parts, stride,
                fan_in);
    }
    return stride;
}

// Waits for the sums that are left and adds them to `sums`.
void add_on_host(Context &context, const Copies &parts, std::int64_t stride, std::vector<std::int64_t> &sums)
{
    const std::size_t n_sums = sums.size();
    const auto left = static_cast<std::size_t>((parts.count + stride - 1) / stride);
    const Claim claim(context.host_budget, left * n_sums * sizeof(std::int64_t));
    std::vector<std::int64_t> rest(left * n_sums);
    const cudaStream_t stream = context.compute.get();
    context.wait(stream, context.stop_flag); // the copy itself would wait without a look at the cancel flag
    checked("cudaMemcpy2DAsync", [&] {
        const std::size_t line = n_sums * sizeof(std::int64_t);
        return cudaMemcpy2DAsync(rest.data(), line, parts.sums, line * static_cast<std::size_t>(stride), line, left,
                                 cudaMemcpyDeviceToHost, stream);
    });
    context.wait(stream);
    for (std::size_t i = 0; i < rest.size(); ++i)
        sums[i % n_sums] += rest[i];
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const int fan_in = merge_fan_in(stage.context.facts);
    const std::int64_t n_sums = std::int64_t{view.k} * view.d * 2, wanted = (view.n + fan_in - 1) / fan_in;
    Copies parts = make_copies(stage.context, n_sums, static_cast<int>(std::min<std::int64_t>(wanted, 1 << 24)),
                               std::int64_t{256} << 20, stage.stream);
    if (parts.count == 0) // not one copy within the device's limit
        return sum_features_atomic(stage, view, labels, totals);
    const std::size_t bytes = static_cast<std::size_t>(n_sums) * sizeof(std::int64_t);
    const Claim claim(stage.context.host_budget, bytes);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(n_sums));
    const std::int64_t step = std::int64_t{parts.count} * fan_in;
    for (std::int64_t first = 0; first < view.n; first += step) {
        const View<T> rows = slice(view, first, std::min(step, view.n - first));
        Copies some = parts;
        some.count = static_cast<int>((rows.n + fan_in - 1) / fan_in);
        if (first != 0)
            enqueue_fill(some.sums, 0, bytes * static_cast<std::size_t>(some.count), stage.stream);
        const std::int64_t stride = add_on_device(stage, rows, labels + first, some, fan_in);
        add_on_host(stage.context, some, stride, sums);
    }
    parts.count = 1;
    enqueue_copy(parts.sums, sums.data(), sums.size(), stage.stream, cudaMemcpyHostToDevice);
    merge_copies(parts, totals, stage.control, stage.stream);
}

} // namespace

const Both<Sum> sum_features_divide_and_conquer = {sum<float>, sum<double>};

} // namespace pgkm::cuda
