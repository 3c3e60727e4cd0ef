// assign.cu (groups) - one assignment of many problems, one block each, with all its sums.
#include "../exact.cuh"
#include "../measure.hpp"
#include "../stages.hpp"
#include "engine/update.hpp"
#include "groups.hpp"

namespace pgkm::cuda {
namespace {

// Sums of one cluster: d x 2 feature limbs, 2 of the mass, 4 of the squared distances, the size.
__host__ __device__ int sums_of(int d) { return 2 * d + 7; }

template <typename T>
__global__ void __launch_bounds__(group_threads)
    assign_kernel(const T *values, const double *weights, int d, const GroupProblem *problems, const T *centroids,
                  const std::int32_t *exponents, std::int32_t *labels, double *distances, std::int64_t *sums)
{
    const GroupProblem problem = problems[blockIdx.x];
    const View<T> view = {values + problem.first_row * d, weights == nullptr ? nullptr : weights + problem.first_row,
                          problem.n_rows, d, problem.k, centroids + problem.cluster * d,
                          exponents + std::int64_t{blockIdx.x} * d, problem.weight_exponent};
    for (std::int64_t row = threadIdx.x; row < view.n; row += group_threads) {
        const Nearest nearest = nearest_by_thread(view.values + row * d, view.centroids, view.k, d);
        labels[problem.first_row + row] = nearest.label;
        distances[problem.first_row + row] = nearest.distance;
        std::int64_t *own = sums + (problem.cluster + nearest.label) * sums_of(d);
        for (int f = 0; f < d; ++f) {
            const Split limbs = feature_limbs(view, row, f);
            add64(own + 2 * f, limbs.hi);
            add64(own + 2 * f + 1, limbs.lo);
        }
        const Split mass = mass_limbs(view, row);
        add64(own + 2 * d, mass.hi);
        add64(own + 2 * d + 1, mass.lo);
        const double weighted = view.weights == nullptr ? nearest.distance : view.weights[row] * nearest.distance;
        const Limbs square = quantise_square(weighted, power_of_two(problem.distance_exponent));
        const Split hi = split_limbs(square.hi), lo = split_limbs(square.lo);
        add64(own + 2 * d + 2, hi.hi);
        add64(own + 2 * d + 3, hi.lo);
        add64(own + 2 * d + 4, lo.hi);
        add64(own + 2 * d + 5, lo.lo);
        add64(own + 2 * d + 6, 1);
    }
}

void store(const std::int64_t *own, std::int32_t k, int d, PgkmAssignment &out)
{
    for (std::int32_t j = 0; j < k; ++j, own += sums_of(d)) {
        if (out.totals != nullptr)
            for (int f = 0; f < d; ++f)
                out.totals[std::int64_t{j} * d + f] = split(join_limb_sums(own[2 * f], own[2 * f + 1]));
        const std::int64_t *rest = own + 2 * d;
        if (out.masses != nullptr)
            out.masses[j] = split(join_limb_sums(rest[0], rest[1]));
        if (out.within != nullptr)
            out.within[j] = split(join_limbs(join_limb_sums(rest[2], rest[3]), join_limb_sums(rest[4], rest[5])));
        if (out.sizes != nullptr)
            out.sizes[j] = rest[6];
    }
}

} // namespace

template <typename T>
void assign_groups(Data &data, const PgkmProblem *problems, const std::vector<std::int64_t> &which,
                   PgkmAssignment *assignments)
{
    if (which.empty())
        return;
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const int d = data.host.d;
    Packed<T> packed(data, problems, which, true);
    const auto rows = static_cast<std::size_t>(data.host.n);
    DeviceArray<std::int32_t> labels(context.budget, rows);
    DeviceArray<double> distances(context.budget, rows);
    DeviceArray<std::int64_t> sums(context.budget, static_cast<std::size_t>(packed.clusters * sums_of(d)));
    sums.fill_zero(stream);
    assign_kernel<T><<<static_cast<unsigned>(which.size()), group_threads, 0, stream>>>(
        reinterpret_cast<const T *>(data.values.get()), data.host.weights == nullptr ? nullptr : data.weights.get(), d,
        packed.device_problems.get(), packed.centroids.get(), packed.exponents.get(), labels.get(), distances.get(),
        sums.get());
    launched("groups assign_kernel");
    context.wait(stream);
    bool want_labels = false, want_distances = false;
    for (const std::int64_t p : which) {
        want_labels |= assignments[p].labels != nullptr;
        want_distances |= assignments[p].distances != nullptr;
    }
    std::vector<std::int32_t> host_labels(want_labels ? rows : 0);
    std::vector<double> host_distances(want_distances ? rows : 0);
    std::vector<std::int64_t> host_sums(sums.count());
    labels.download(host_labels.data(), host_labels.size(), stream);
    distances.download(host_distances.data(), host_distances.size(), stream);
    sums.download(host_sums.data(), host_sums.size(), stream);
    context.wait(stream);
    for (std::size_t i = 0; i < which.size(); ++i) {
        const GroupProblem &problem = packed.problems[i];
        PgkmAssignment &out = assignments[which[i]];
        if (out.labels != nullptr)
            std::copy_n(host_labels.begin() + problem.first_row, problem.n_rows, out.labels);
        if (out.distances != nullptr)
            std::copy_n(host_distances.begin() + problem.first_row, problem.n_rows, out.distances);
        store(host_sums.data() + problem.cluster * sums_of(d), problem.k, d, out);
    }
}

template void assign_groups<float>(Data &, const PgkmProblem *, const std::vector<std::int64_t> &, PgkmAssignment *);
template void assign_groups<double>(Data &, const PgkmProblem *, const std::vector<std::int64_t> &, PgkmAssignment *);

} // namespace pgkm::cuda
