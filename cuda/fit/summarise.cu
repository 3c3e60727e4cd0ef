// summarise.cu - ranges and moments of features, of one or many problems in one launch.
//
// A thread stays with one feature and walks rows, so that its partial results live in
// registers. Ranges leave a block by one atomic a feature (all threads of few features would queue up for
// the same ones), moments a thread. Minima and maxima travel as integers that order like the doubles they stand for.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/peers.hpp"
#include "plan/stages.hpp"
#include "plugin/operations.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

struct RowRange {
    std::int64_t first;
    std::int64_t n;
};

// What one problem's features yield: d of each.
struct Bounds {
    unsigned long long min;
    unsigned long long max;
};

struct MomentSums {
    std::int64_t value[2];  // limbs of sum(x - middle)
    std::int64_t square[4]; // limbs of sum((x - middle)^2)
};

// Memory of one feature of one problem, on the device as on the host.
constexpr std::size_t feature_bytes = sizeof(Bounds) + sizeof(MomentScale) + sizeof(MomentSums);

// An order-preserving integer image of a double without NaN; -0 and 0 become the same.
__host__ __device__ unsigned long long ordered(double value)
{
    value += 0.0;
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 != 0 ? ~bits : bits | (1ULL << 63);
}

double from_ordered(unsigned long long image)
{
    const unsigned long long bits = image >> 63 != 0 ? image & ~(1ULL << 63) : ~image;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Where a thread works: its feature and the rows first, first + step, ...
struct Walk {
    int feature;
    std::int64_t first;
    std::int64_t step;
};

__device__ Walk make_walk(int d)
{
    if (d > threads)
        return {static_cast<int>(blockIdx.z * threads + threadIdx.x), blockIdx.x, gridDim.x};
    const int rows = threads / d;
    const int row = static_cast<int>(threadIdx.x) / d;
    const int feature = row < rows ? static_cast<int>(threadIdx.x) % d : d; // d: idle
    return {feature, std::int64_t{blockIdx.x} * rows + row, std::int64_t{gridDim.x} * rows};
}

// The least and greatest of each feature over a block's rows; the threads of its first row get them. By all threads.
template <typename T>
__device__ void join_in_block(int d, T &low, T &high)
{
    __shared__ T lows[threads], highs[threads];
    const int self = static_cast<int>(threadIdx.x);
    lows[self] = low;
    highs[self] = high;
    for (int rows = threads / d; rows > 1;) {
        const int kept = (rows + 1) / 2; // row i takes row i + kept in
        __syncthreads();
        if (self / d < rows - kept) {
            low = lows[self + kept * d] < low ? lows[self + kept * d] : low;
            high = highs[self + kept * d] > high ? highs[self + kept * d] : high;
            lows[self] = low;
            highs[self] = high;
        }
        rows = kept;
    }
}

template <typename T>
__global__ void __launch_bounds__(threads)
    bounds_kernel(const T *values, const double *weights, int d, const RowRange *ranges, Bounds *bounds,
                  unsigned long long *max_weight)
{
    const RowRange range = ranges[blockIdx.y];
    const Walk walk = make_walk(d);
    const std::int64_t n = walk.feature < d ? range.n : 0;
    const T *from = values + range.first * d + walk.feature;
    T low = INFINITY, high = -INFINITY;
    constexpr int ahead = 8; // loads under way
    std::int64_t i = walk.first;
    for (; i + (ahead - 1) * walk.step < n; i += ahead * walk.step) {
        T value[ahead];
#pragma unroll
        for (int j = 0; j < ahead; ++j)
            value[j] = from[(i + j * walk.step) * d];
#pragma unroll
        for (int j = 0; j < ahead; ++j) {
            low = value[j] < low ? value[j] : low;
            high = value[j] > high ? value[j] : high;
        }
    }
    for (; i < n; i += walk.step) {
        low = from[i * d] < low ? from[i * d] : low;
        high = from[i * d] > high ? from[i * d] : high;
    }
    join_in_block(d, low, high);
    if ((d > threads || threadIdx.x < static_cast<unsigned>(d)) && low <= high) {
        Bounds *out = bounds + std::int64_t{blockIdx.y} * d + walk.feature;
        atomicMin(&out->min, ordered(static_cast<double>(low)));
        atomicMax(&out->max, ordered(static_cast<double>(high)));
    }
    __shared__ unsigned long long heaviest;
    if (threadIdx.x == 0)
        heaviest = 0;
    __syncthreads();
    if (walk.feature == 0 && walk.first < n) {
        double own = weights == nullptr ? 1.0 : 0.0;
        for (std::int64_t row = walk.first; weights != nullptr && row < n; row += walk.step)
            own = fmax(own, weights[range.first + row]);
        atomicMax(&heaviest, ordered(own));
    }
    __syncthreads();
    if (threadIdx.x == 0 && heaviest != 0)
        atomicMax(max_weight + blockIdx.y, heaviest);
}

template <typename T>
__global__ void moments_kernel(const T *values, int d, const RowRange *ranges, const MomentScale *scales,
                               MomentSums *sums)
{
    const RowRange range = ranges[blockIdx.y];
    const Walk walk = make_walk(d);
    if (walk.feature >= d || walk.first >= range.n)
        return;
    const MomentScale scale = scales[std::int64_t{blockIdx.y} * d + walk.feature];
    const double value_scale = power_of_two(scale.value_exponent), square_scale = power_of_two(scale.square_exponent);
    MomentSums own = {};
    for (std::int64_t i = walk.first; i < range.n; i += walk.step) {
        const double centred = static_cast<double>(values[(range.first + i) * d + walk.feature]) - scale.middle;
        const Split value = split_limbs(quantise(centred, value_scale));
        const Limbs limbs = quantise_square(centred * centred, square_scale);
        const Split hi = split_limbs(limbs.hi), lo = split_limbs(limbs.lo);
        own.value[0] += value.hi;
        own.value[1] += value.lo;
        own.square[0] += hi.hi;
        own.square[1] += hi.lo;
        own.square[2] += lo.hi;
        own.square[3] += lo.lo;
    }
    MomentSums *out = sums + std::int64_t{blockIdx.y} * d + walk.feature;
    for (int i = 0; i < 2; ++i)
        add64(&out->value[i], own.value[i]);
    for (int i = 0; i < 4; ++i)
        add64(&out->square[i], own.square[i]);
}

dim3 grid_for(const Data &data, std::int64_t rows, std::size_t problems)
{
    const int d = data.host.d;
    const int per_block = d > threads ? 64 : 16 * (threads / d);
    const int most =
        std::max(1, data.context.facts.multiprocessors * 16 / static_cast<int>(std::min<std::size_t>(problems, 16)));
    return dim3(static_cast<unsigned>(blocks_for(rows, per_block, most)), static_cast<unsigned>(problems),
                static_cast<unsigned>(d > threads ? (d + threads - 1) / threads : 1));
}

// Statistics of many problems (resident data) or of one (streamed data) at a time.
template <typename T>
class Summariser {
  public:
    Summariser(Data &data, const PgkmProblem *problems, std::size_t count)
        : data_(data), problems_(problems), count_(count), n_features_(count * static_cast<std::size_t>(data.host.d)),
          claim_(data.context.host_budget, n_features_ * feature_bytes), ranges_(data.context.budget, count),
          device_bounds_(data.context.budget, n_features_), device_weight_(data.context.budget, count),
          bounds_(n_features_, Bounds{~0ULL, 0}), weight_(count, 0)
    {
    }

    void find_bounds()
    {
        device_bounds_.upload(bounds_.data(), n_features_, stream());
        device_weight_.upload(weight_.data(), count_, stream());
        each_launch([&](const T *values, const double *weights, std::int64_t rows) {
            enqueue(bounds_kernel<T>, grid_for(data_, rows, count_), threads, 0, stream(), values, weights,
                    data_.host.d, ranges_.get(), device_bounds_.get(), device_weight_.get());
        });
        bounds_ = data_.context.fetch(device_bounds_);
        weight_ = data_.context.fetch(device_weight_);
        for (std::size_t p = 0; p < count_; ++p)
            if (problems_[p].peers != nullptr)
                widen(p);
    }

    void find_moments()
    {
        std::vector<MomentScale> scales(n_features_);
        for (std::size_t i = 0; i < n_features_; ++i)
            scales[i] = moment_scale(from_ordered(bounds_[i].min), from_ordered(bounds_[i].max));
        DeviceArray<MomentScale> device_scales(data_.context.budget, n_features_);
        device_scales.upload(scales.data(), n_features_, stream());
        auto device_sums = zeros<MomentSums>(data_.context.budget, n_features_, stream());
        each_launch([&](const T *values, const double *, std::int64_t rows) {
            enqueue(moments_kernel<T>, grid_for(data_, rows, count_), threads, 0, stream(), values, data_.host.d,
                    ranges_.get(), device_scales.get(), device_sums.get());
        });
        std::vector<MomentSums> sums = data_.context.fetch(device_sums);
        const auto d = static_cast<std::size_t>(data_.host.d);
        static_assert(sizeof(MomentSums) == 6 * sizeof(std::int64_t));
        for (std::size_t p = 0; p < count_; ++p)
            add_over(problems_[p].peers, reinterpret_cast<std::int64_t *>(sums.data() + p * d), 6 * d);
        moments_.resize(n_features_);
        for (std::size_t i = 0; i < n_features_; ++i) {
            const MomentSums &s = sums[i];
            moments_[i] = moments_of(scales[i], sum_of(s.value, 1, 0, false), sum_of(s.square, 1, 0, true),
                                     all_rows(problems_[i / d]));
        }
    }

    void store(std::size_t problem, PgkmSummary &out) const
    {
        const auto d = static_cast<std::size_t>(data_.host.d);
        const Box own = box(problem);
        std::copy_n(own.min.data(), d, out.min);
        std::copy_n(own.max.data(), d, out.max);
        for (std::size_t f = 0; f < d && !moments_.empty(); ++f) {
            out.mean[f] = moments_[problem * d + f].mean;
            out.variance[f] = moments_[problem * d + f].variance;
        }
        out.max_weight = data_.host.weights == nullptr ? 1.0 : from_ordered(weight_[problem]);
    }

    Box box(std::size_t problem) const
    {
        const auto d = static_cast<std::size_t>(data_.host.d);
        Box box;
        for (std::size_t f = 0; f < d; ++f) {
            box.min.push_back(from_ordered(bounds_[problem * d + f].min));
            box.max.push_back(from_ordered(bounds_[problem * d + f].max));
        }
        return box;
    }

  private:
    cudaStream_t stream() const { return data_.context.compute.get(); }

    // To the ranges of all peers' rows.
    void widen(std::size_t problem)
    {
        Box own = box(problem);
        double weight = from_ordered(weight_[problem]);
        widen_over(problems_[problem].peers, own.min.size(), own.min.data(), own.max.data(), &weight);
        weight_[problem] = ordered(weight);
        for (std::size_t f = 0; f < own.min.size(); ++f)
            bounds_[problem * own.min.size() + f] = {ordered(own.min[f]), ordered(own.max[f])};
    }

    // Streamed data has one problem (count_ is 1) and its chunks are the ranges.
    template <typename Body>
    void each_launch(Body &&body)
    {
        if (data_.resident) {
            std::vector<RowRange> ranges(count_);
            std::int64_t longest = 0;
            for (std::size_t p = 0; p < count_; ++p) {
                ranges[p] = {problems_[p].first_row, problems_[p].n_rows};
                longest = std::max(longest, problems_[p].n_rows);
            }
            ranges_.upload(ranges.data(), count_, stream());
            body(reinterpret_cast<const T *>(data_.values.get()),
                 data_.host.weights == nullptr ? nullptr : static_cast<const double *>(data_.weights.get()), longest);
            return;
        }
        data_.each_chunk<T>(problems_[0].first_row, problems_[0].n_rows,
                            [&](const T *values, const double *weights, std::int64_t, std::int64_t rows) {
                                const RowRange range = {0, rows};
                                ranges_.upload(&range, 1, stream());
                                body(values, weights, rows);
                            });
    }

    Data &data_;
    const PgkmProblem *problems_;
    std::size_t count_;
    std::size_t n_features_;
    Claim claim_;
    DeviceArray<RowRange> ranges_;
    DeviceArray<Bounds> device_bounds_;
    DeviceArray<unsigned long long> device_weight_;
    std::vector<Bounds> bounds_;
    std::vector<unsigned long long> weight_;
    std::vector<Moments> moments_;
};

} // namespace

template <typename T>
void summarise_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, bool want_moments,
                        PgkmSummary *summaries)
{
    // A grid has at most 65,535 rows of blocks; streamed data is read once per problem.
    std::int64_t most = 1;
    if (data.resident) {
        const std::uint64_t room =
            data.context.budget.room() / 2 / (static_cast<std::uint64_t>(data.host.d) * feature_bytes + 24);
        most = static_cast<std::int64_t>(std::clamp<std::uint64_t>(room, 1, 32768));
    }
    for (std::int64_t first = 0; first < n_problems; first += most) {
        data.context.poll();
        const auto count = static_cast<std::size_t>(std::min(most, n_problems - first));
        Summariser<T> summariser(data, problems + first, count);
        summariser.find_bounds();
        if (want_moments)
            summariser.find_moments();
        for (std::size_t p = 0; p < count; ++p) {
            const PgkmProblem &problem = problems[first + static_cast<std::int64_t>(p)];
            summariser.store(p, summaries[first + static_cast<std::int64_t>(p)]);
            if (data.boxes.size() < 4096)
                data.boxes[{problem.first_row, problem.n_rows}] = summariser.box(p);
        }
    }
}

Box feature_box(Data &data, const PgkmProblem &problem)
{
    const auto found = data.boxes.find({problem.first_row, problem.n_rows});
    if (found != data.boxes.end())
        return found->second;
    PgkmProblem own = problem;
    own.peers = nullptr; // these may know theirs already
    with_element(data, [&](auto element) {
        Summariser<decltype(element)> summariser(data, &own, 1);
        summariser.find_bounds();
        data.boxes[{problem.first_row, problem.n_rows}] = summariser.box(0);
    });
    return data.boxes[{problem.first_row, problem.n_rows}];
}

template void summarise_problems<float>(Data &, const PgkmProblem *, std::int64_t, bool, PgkmSummary *);
template void summarise_problems<double>(Data &, const PgkmProblem *, std::int64_t, bool, PgkmSummary *);

} // namespace pgkm::cuda
