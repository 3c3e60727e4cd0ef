#include "engine/job/work.hpp"

#include <algorithm>
#include <vector>

#include "cpu/kernels/product_kernels.hpp"
#include "numeric/contract.hpp"
#include "engine/kmeans/fit.hpp"
#include "engine/mixture/mixture.hpp"
#include "engine/mixture/clusters.hpp"
#include "engine/mixture/options.hpp"

namespace pgkm {
namespace {

// Opening a backend, memory, a model; and an iteration or a restart without rows.
constexpr double fixed_operations = 5e4;
constexpr double step_operations = 1e3;

// Fits end after so many iterations, mostly.
constexpr double usual_iterations = 30.0;

// One fit of k-means; k <= n.
struct Shape {
    double n, d, k;
};

Shape shape_of(const PgkmGroup &group, std::int32_t d, std::int64_t k)
{
    return {static_cast<double>(group.n), static_cast<double>(d), static_cast<double>(std::min(k, group.n))};
}

double distances(const Shape &fit) { return fit.n * fit.k * fit.d; }

double trials(const Shape &fit) { return greedy_trials(static_cast<int>(fit.k)); }

double shared_by_fit(const Shape &fit, const PgkmOptions &options)
{
    return distances(fit) * (std::min<double>(options.max_iter, usual_iterations) + trials(fit)) * options.n_init;
}

double seeding(const Shape &fit, PgkmInit init)
{
    if (init == PGKM_INIT_KMEANS_PLUS_PLUS)
        return distances(fit) * trials(fit);
    if (init != PGKM_INIT_KMEANS_PARALLEL)
        return fit.k * (fit.d + 100.0);
    const double sampled = std::min(fit.n, fit.k * oversampling_factor * oversampling_rounds + 1.0);
    return fit.d * sampled * (fit.n + fit.k * trials(fit));
}

double most_of_fit(const Shape &fit, const PgkmOptions &options)
{
    const double summary = 10.0 * fit.n * fit.d;
    const double centroids = 40.0 * fit.k * fit.d; // divisions of 128-bit sums, the model
    const double iteration = distances(fit) + centroids + 10.0 * fit.n + step_operations;
    const double labelling = iteration + summary;
    return fixed_operations + summary +
           options.n_init * (seeding(fit, options.init) + options.max_iter * iteration + labelling);
}

// Three indices, by distances to all centroids and among these.
double quality(const Shape &fit) { return 2.0 * distances(fit) + fit.k * fit.k * fit.d; }

// An E step of one mixture and, over its rows, the M step.
double step_over_rows(const Shape &mixture, PgkmCovariance type)
{
    const double n = mixture.n, d = mixture.d, k = mixture.k;
    switch (type) {
    case PGKM_COVARIANCE_FULL:
        return n * k * d * d;
    case PGKM_COVARIANCE_TIED:
        return n * d * (d + 2.0 * k);
    case PGKM_COVARIANCE_DIAG:
    case PGKM_COVARIANCE_SPHERICAL:
        break;
    }
    return n * k * d * 2.0;
}

// What else an iteration takes: covariances, their factors (d^3 / 6 for Cholesky's, as much for the inverse),
// exponentials, and memory for a block of rows.
double step_over_parameters(const Shape &mixture, PgkmCovariance type)
{
    const double d = mixture.d, k = mixture.k;
    const double matrices = type == PGKM_COVARIANCE_FULL ? k : type == PGKM_COVARIANCE_TIED ? 1.0 : 0.0;
    const double tied = type == PGKM_COVARIANCE_TIED ? 2.0 * k * d * d : 0.0;
    return matrices * (d * d * d / 3.0 + 20.0 * d * d) + tied + 40.0 * k * d + 20.0 * mixture.n * k +
           (matrices > 0.0 ? 3.0 : 1.0) * cpu::block_rows * d + step_operations;
}

double most_of_mixture(const Shape &mixture, const PgkmMixtureOptions &options, const PgkmOptions &clusters)
{
    const double step = step_over_rows(mixture, options.covariance_type) +
                        step_over_parameters(mixture, options.covariance_type);
    const double begin = all_given(options) ? 0.0 : most_of_fit(mixture, clusters);
    const double total = options.covariance_type == PGKM_COVARIANCE_TIED ? mixture.n * mixture.d * mixture.d : 0.0;
    // The first parameters and the labels take a step each.
    return fixed_operations + total + options.n_init * (begin + (options.max_iter + 2.0) * step);
}

} // namespace

Work work_of(const PgkmFitRequest &request)
{
    Work work = {0.0, 0.0};
    for (const PgkmGroup &group : groups_of(request)) {
        // Of a sweep, which may have 2^31 fits, as many times the one in the middle.
        const std::int64_t more = request.k_last == 0 ? 0 : last_fit(request) - group.k;
        const double fits = static_cast<double>(more + 1);
        const Shape fit = shape_of(group, request.points.d, group.k + more / 2);
        work.shared += fits * shared_by_fit(fit, request.options);
        work.most += fits * (most_of_fit(fit, request.options) + (request.k_last == 0 ? 0.0 : quality(fit)));
    }
    return work;
}

Work work_of(const PgkmMixtureRequest &request)
{
    const PgkmMixtureOptions &options = request.options;
    const PgkmOptions clusters = clusters_request(request).options;
    Work work = {0.0, 0.0};
    for (const PgkmGroup &group : mixture_groups(request)) {
        const Shape mixture = shape_of(group, request.points.d, group.k);
        work.shared += step_over_rows(mixture, options.covariance_type) *
                       std::min<double>(options.max_iter, usual_iterations) * options.n_init;
        work.most += most_of_mixture(mixture, options, clusters);
    }
    return work;
}

Work work_of(const PgkmPcaRequest &request)
{
    const double d = request.points.d;
    const double n = request.points.values == nullptr ? 0.0 : static_cast<double>(request.points.n);
    // Eigenvectors are the CPU's.
    return {n * d * d, fixed_operations + n * d * d + 5.0 * d * d * d + 20.0 * d * d};
}

} // namespace pgkm
