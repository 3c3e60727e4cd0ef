// assign.cu (groups) - one assignment of many problems, one block each, with what is asked over it: labels,
// distances, and sums of features, masses, squared distances and sizes of the clusters.
//
// Shape: as fit.cu.
// Data: centroids and sums lie in shared memory; sums leave the block once.
// Threads: a row a thread at a time, one barrier where sums are flushed (sums.cuh).
// Reference: the contract's assignment (numeric/contract.hpp), to the bit.
#include "backend/update.hpp"
#include "groups/labels.cuh"
#include "groups/sums.cuh"
#include "groups/transfer.hpp"

namespace pgkm::cuda {
namespace {

// Sums of one cluster: of features and mass, and the others: 4 limbs of the squared distances, the size.
constexpr int others = 5;
__host__ __device__ constexpr int sums_of(int d, bool weighted)
{
    return group_width(d, weighted) + others;
}

template <typename T>
struct Arguments {
    const T *values;
    const double *weights;
    int d;
    const GroupProblem *problems;
    const T *centroids;            // of all problems
    const FeatureScale<T> *scales; // problems x d
    std::int32_t *labels;          // of all rows, or nullptr
    double *distances;             // of all rows, or nullptr
    std::int64_t *sums;            // of all clusters, or nullptr
    int replicas;                  // copies of the block's counters
    const volatile std::int32_t *cancel;
};

// Everything that is summed over one row, in the counters of its cluster.
template <typename T>
__device__ void add_all(const View<T> &view, std::int32_t row, double distance, double square_scale,
                        std::int32_t *counters)
{
    add_row(view, view.feature_scales, row, counters);
    counters += group_width(view.d, view.weights != nullptr);
    add_square(counters, view.weights == nullptr ? distance : view.weights[row] * distance, square_scale);
}

template <typename Labels, typename T = typename Labels::Element>
__global__ void __launch_bounds__(group_threads) assign_kernel(Arguments<T> a)
{
    if (group_cancelled(a.cancel))
        return;
    const GroupProblem &problem = a.problems[blockIdx.x];
    const int d = a.d, k = problem.k, width = sums_of(d, a.weights != nullptr),
              count = a.sums == nullptr ? 0 : k * width;
    const View<T> view = {a.values + problem.first_row * d,
                          a.weights == nullptr ? nullptr : a.weights + problem.first_row,
                          problem.n_rows,
                          d,
                          k,
                          a.centroids + problem.cluster * d,
                          a.scales + std::int64_t{blockIdx.x} * d,
                          problem.weight_exponent};
    // Shared memory: centroids (k x pitch), sums (k x width), counters (replicas x k x width).
    extern __shared__ double2 memory[];
    T *const centroids = reinterpret_cast<T *>(memory);
    std::int64_t *const sums = reinterpret_cast<std::int64_t *>(
        reinterpret_cast<char *>(memory) + (static_cast<std::size_t>(k * Labels::pitch(d)) * sizeof(T) + 15) / 16 * 16);
    std::int32_t *const counters = reinterpret_cast<std::int32_t *>(sums + k * width);
    stage_centroids<Labels>(view, centroids);
    clear(sums, count);
    clear(counters, a.replicas * count);
    __syncthreads();
    const int rounds = square_additions / (group_threads / a.replicas);
    int round = 0;
    for (std::int32_t start = 0; start < view.n; start += group_threads) {
        const std::int32_t row = start + static_cast<std::int32_t>(threadIdx.x);
        if (row < view.n) {
            const int label = Labels::label(view, row, centroids);
            double distance = 0.0;
            if (a.distances != nullptr || a.sums != nullptr)
                distance =
                    exact_distance(view.values + std::int64_t{row} * d, view.centroids + std::int64_t{label} * d, d);
            if (a.labels != nullptr)
                a.labels[problem.first_row + row] = label;
            if (a.distances != nullptr)
                a.distances[problem.first_row + row] = distance;
            if (a.sums != nullptr)
                add_all(view, row, distance, power_of_two(problem.distance_exponent),
                        counters + static_cast<int>(threadIdx.x) % a.replicas * count + label * width);
        }
        if (a.sums != nullptr && ++round == rounds) {
            round = 0;
            flush_counters(sums, counters, count, a.replicas);
        }
    }
    if (a.sums == nullptr)
        return;
    flush_counters(sums, counters, count, a.replicas);
    for (int i = threadIdx.x; i < count; i += group_threads)
        a.sums[problem.cluster * width + i] = sums[i];
}

template <typename Labels, typename T = typename Labels::Element>
void launch(Context &context, Arguments<T> a, const std::vector<GroupProblem> &problems)
{
    const auto k = static_cast<std::size_t>(most_clusters(problems)),
               width = static_cast<std::size_t>(sums_of(a.d, a.weights != nullptr));
    const auto bytes = [&](int replicas) {
        const std::size_t centroids = (k * static_cast<std::size_t>(Labels::pitch(a.d)) * sizeof(T) + 15) / 16 * 16;
        return a.sums == nullptr ? centroids : centroids + k * width * (8 + 4 * static_cast<std::size_t>(replicas));
    };
    a.replicas = bytes(4) <= static_cast<std::size_t>(context.facts.shared_bytes_per_block) ? 4 : 2;
    enqueue(assign_kernel<Labels, T>, problems.size(), group_threads, bytes(a.replicas), context.compute.get(), a);
}

void store(const std::int64_t *own, std::int32_t k, int d, int width, PgkmAssignment &out)
{
    for (std::int32_t j = 0; j < k; ++j, own += width + others) {
        if (out.totals != nullptr)
            for (int f = 0; f < d; ++f)
                out.totals[std::int64_t{j} * d + f] = split(group_sum(own, d, f, width));
        const std::int64_t *rest = own + width;
        if (out.masses != nullptr)
            out.masses[j] = split(group_sum(own, d, d, width));
        if (out.within != nullptr)
            out.within[j] = split(sum_of(rest, 1, 0, true));
        if (out.sizes != nullptr)
            out.sizes[j] = rest[4];
    }
}

} // namespace

std::size_t group_assign_bytes(std::int64_t k, std::int64_t d, bool weighted)
{
    const std::int64_t padded = d <= 4 ? 4 : d <= 8 ? 8 : d <= 16 ? 16 : d;
    return static_cast<std::size_t>(k * padded * 8 + 16 + k * sums_of(static_cast<int>(d), weighted) * (8 + 4 * 2));
}

template <typename T>
void assign_groups(Data &data, const PgkmProblem *problems, const std::vector<std::int64_t> &which,
                   PgkmAssignment *assignments)
{
    if (which.empty())
        return;
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const int d = data.host.d;
    const bool weighted = data.host.weights != nullptr;
    const int width = group_width(d, weighted), all = sums_of(d, weighted);
    bool want_labels = false, want_distances = false, want_sums = false;
    for (const std::int64_t p : which) {
        const PgkmAssignment &out = assignments[p];
        want_labels |= out.labels != nullptr;
        want_distances |= out.distances != nullptr;
        want_sums |= out.totals != nullptr || out.masses != nullptr || out.within != nullptr || out.sizes != nullptr;
    }
    Packed<T> packed(data, problems, which, true);
    const auto rows = static_cast<std::size_t>(data.host.n);
    DeviceArray<std::int32_t> labels(context.budget, want_labels ? rows : 0);
    DeviceArray<double> distances(context.budget, want_distances ? rows : 0);
    DeviceArray<std::int64_t> sums(context.budget, want_sums ? static_cast<std::size_t>(packed.clusters * all) : 0);
    auto cancel = zeros<std::int32_t>(context.budget, 1, stream);
    const Arguments<T> arguments = {reinterpret_cast<const T *>(data.values.get()),
                                    weighted ? data.weights.get() : nullptr,
                                    d,
                                    packed.device_problems.get(),
                                    packed.centroids.get(),
                                    packed.scales.get(),
                                    labels.get(),
                                    distances.get(),
                                    sums.get(),
                                    0,
                                    cancel.get()};
    with_labels<T>(d, [&](auto labeller) { launch<decltype(labeller)>(context, arguments, packed.problems); });
    context.wait(stream, cancel.get());
    std::vector<Rows<std::int32_t>> label_rows;
    std::vector<Rows<double>> distance_rows;
    for (std::size_t i = 0; i < which.size(); ++i) {
        const GroupProblem &problem = packed.problems[i];
        const PgkmAssignment &out = assignments[which[i]];
        if (out.labels != nullptr)
            label_rows.push_back({problem.first_row, problem.n_rows, out.labels});
        if (out.distances != nullptr)
            distance_rows.push_back({problem.first_row, problem.n_rows, out.distances});
    }
    download_rows(context, labels, label_rows);
    download_rows(context, distances, distance_rows);
    if (!want_sums)
        return;
    const std::vector<std::int64_t> host_sums = context.fetch(sums);
    for (std::size_t i = 0; i < which.size(); ++i)
        store(host_sums.data() + packed.problems[i].cluster * all, packed.problems[i].k, d, width,
              assignments[which[i]]);
}

template void assign_groups<float>(Data &, const PgkmProblem *, const std::vector<std::int64_t> &, PgkmAssignment *);
template void assign_groups<double>(Data &, const PgkmProblem *, const std::vector<std::int64_t> &, PgkmAssignment *);

} // namespace pgkm::cuda
