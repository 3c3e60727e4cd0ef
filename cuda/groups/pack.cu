// pack.cu (groups) - decides which problems are solved by one block each, and copies their shapes, scales and
// centroids to the device, all problems' in one array each.
#include <algorithm>

#include "device/view.cuh"
#include "groups/groups.hpp"

namespace pgkm::cuda {

namespace {

// Whether all of them at once keep within the limits: an assignment, which needs most.
bool fits_limits(const Data &data, const PgkmProblem *problems, const std::vector<std::int64_t> &which)
{
    const auto d = static_cast<std::uint64_t>(data.host.d);
    std::uint64_t clusters = 0;
    for (const std::int64_t p : which)
        clusters += static_cast<std::uint64_t>(problems[p].k);
    const std::uint64_t rows = static_cast<std::uint64_t>(data.host.n) * 12; // labels, distances
    const auto sums = static_cast<std::uint64_t>(group_width(data.host.d, data.host.weights != nullptr)) + 5;
    const std::uint64_t bytes =
        rows + which.size() * (sizeof(GroupProblem) + 16 * d) + clusters * (8 * sums + d * data.element_bytes());
    return data.context.budget.has(bytes) && data.context.host_budget.fits(bytes);
}

// Whether one block each is sooner done than one after the other with the whole device: 20
// iterations, with what was measured on an H200 of a block, of the device, and of a fit's start.
bool pays_together(const Data &data, const PgkmProblem *problems, const std::vector<std::int64_t> &which)
{
    constexpr double iterations = 20.0, block_rate = 5e10, device_rate = 3e12, start = 4e-4;
    double total = 0.0, largest = 0.0;
    for (const std::int64_t p : which) {
        const double row = static_cast<double>(problems[p].k) * data.host.d + 64.0; // distance terms, and its sums
        const double work = static_cast<double>(problems[p].n_rows) * row;
        total += work;
        largest = std::max(largest, work);
    }
    const double blocks = 2.0 * data.context.facts.multiprocessors;
    const double together = iterations * std::max(largest, total / blocks) / block_rate;
    const double apart = static_cast<double>(which.size()) * start + iterations * total / device_rate;
    return together <= apart;
}

} // namespace

std::vector<std::int64_t> eligible(const Data &data, const PgkmProblem *problems, std::int64_t n_problems)
{
    std::vector<std::int64_t> which;
    if (!data.resident || n_problems < 4 || !data.context.forced.nothing())
        return which;
    const std::int64_t d = data.host.d;
    const bool weighted = data.host.weights != nullptr;
    // Two blocks to a multiprocessor of compute capability 9.0, where the device has as much for one.
    const auto most_shared =
        std::min<std::size_t>(112 * 1024, static_cast<std::size_t>(data.context.facts.shared_bytes_per_block));
    const auto shared = [&](std::int32_t k) {
        return std::max(group_fit_bytes(k, data.host.d, weighted, data.element_bytes()),
                        group_assign_bytes(k, data.host.d, weighted));
    };
    for (std::int64_t p = 0; p < n_problems; ++p) {
        const PgkmProblem &problem = problems[p];
        // The bound of rows x k x d keeps an iteration of one block near 10 ms, for cancel's sake.
        if (problem.k >= 1 && problem.n_rows >= 1 && problem.first_row >= 0 &&
            problem.first_row + problem.n_rows <= data.host.n && problem.n_rows <= group_rows_limit &&
            problem.n_rows * problem.k * d <= (std::int64_t{1} << 27) && shared(problem.k) <= most_shared)
            which.push_back(p);
    }
    if (which.size() < 4 || !pays_together(data, problems, which) || !fits_limits(data, problems, which))
        which.clear();
    return which;
}

template <typename T>
Packed<T>::Packed(Data &data, const PgkmProblem *from, const std::vector<std::int64_t> &which, bool with_centroids)
{
    const auto d = static_cast<std::size_t>(data.host.d);
    std::vector<FeatureScale<T>> all_scales(which.size() * d);
    for (std::size_t i = 0; i < which.size(); ++i) {
        const PgkmProblem &p = from[which[i]];
        problems.push_back(
            {p.first_row, p.n_rows, clusters, p.k, p.weight_exponent, p.distance_exponent, p.tol, 0, 0, running, 0.0});
        clusters += p.k;
        if (p.feature_scales != nullptr)
            std::transform(p.feature_scales, p.feature_scales + d, all_scales.begin() + static_cast<long>(i * d),
                           device_scale<T>);
    }
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    device_problems = DeviceArray<GroupProblem>(context.budget, problems.size());
    device_problems.upload(problems.data(), problems.size(), stream);
    scales = DeviceArray<FeatureScale<T>>(context.budget, all_scales.size());
    scales.upload(all_scales.data(), all_scales.size(), stream);
    if (with_centroids) {
        std::vector<T> all(static_cast<std::size_t>(clusters) * d);
        for (std::size_t i = 0; i < which.size(); ++i)
            std::copy_n(static_cast<const T *>(from[which[i]].centroids), static_cast<std::size_t>(problems[i].k) * d,
                        all.begin() + problems[i].cluster * data.host.d);
        centroids = DeviceArray<T>(context.budget, all.size());
        centroids.upload(all.data(), all.size(), stream);
    }
    context.wait(stream);
}

template struct Packed<float>;
template struct Packed<double>;

} // namespace pgkm::cuda
