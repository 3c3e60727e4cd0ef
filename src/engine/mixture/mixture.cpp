// mixture.cpp - Gaussian mixtures by expectation and maximisation (Dempster, Laird, Rubin 1977; Ma and Agrawal 2009 for
// its shape), with the conventions of scikit-learn's GaussianMixture: checks, cost, and from a request to its models.
#include <algorithm>
#include <cmath>
#include <string>

#include "backend/covariance.hpp"
#include "cpu/cpu_backend.hpp"
#include "engine/kmeans/work.hpp"
#include "engine/mixture/fitter.hpp"
#include "engine/mixture/missing.hpp"
#include "engine/mixture/options.hpp"
#include "engine/nodes/nodes.hpp"
#include "numeric/reduction.hpp"

namespace pgkm {
namespace {

class MixtureModels : public Models {
  public:
    explicit MixtureModels(std::vector<MixtureModel> &&models) : models_(std::move(models)) {}
    std::int64_t size() const override { return static_cast<std::int64_t>(models_.size()); }
    void get(std::int64_t i, PgkmResult *result) const override
    {
        const MixtureModel &model = models_[static_cast<std::size_t>(i)];
        const MixtureParameters &parameters = model.parameters;
        const double count = parameter_count(parameters.type, parameters.k, parameters.d);
        result->k = parameters.k;
        result->d = parameters.d;
        result->n = model.n;
        result->center = data_or_null(model.units.center);
        result->scale = data_or_null(model.units.scale);
        result->weights = parameters.weights.data();
        result->means = parameters.means.data();
        result->covariances = parameters.covariances.data();
        result->log_likelihood = model.log_likelihood;
        result->trace = model.trace.data();
        result->n_iter = static_cast<int32_t>(model.trace.size());
        result->converged = model.converged ? 1 : 0;
        result->aic = 2.0 * count - 2.0 * model.log_likelihood;
        result->bic = count * std::log(model.mass) - 2.0 * model.log_likelihood;
        result->labels = data_or_null(model.labels);
    }

  private:
    std::vector<MixtureModel> models_; // one for each group
};

void check(const PgkmRequest &request, const PgkmGroup &group)
{
    const PgkmCovariance type = request.mixture.covariance_type;
    check_mixture_options(request.mixture, group.k, request.points.d);
    if (request.may_lack_values == 0)
        return;
    if (type != PGKM_COVARIANCE_FULL && type != PGKM_COVARIANCE_DIAG)
        throw Error(PGKM_UNSUPPORTED, std::string("missing values are for covariance_type full and diag, not ") +
                                          pgkm_covariance_name(type));
    if (request.mixture.precisions_init.values != nullptr)
        throw Error(PGKM_INVALID, "option precisions_init must be null where values may be missing");
    if (is_spread(request))
        throw Error(PGKM_UNSUPPORTED, "missing values need all rows in memory here");
}

// The CPU alone has rows that lack values.
PgkmStatus supported(const PgkmRequest &request, const PgkmBackend &table, PgkmError *error)
{
    return guarded(error, [&] {
        if (request.may_lack_values != 0 && &table != cpu_backend())
            throw Error(PGKM_UNSUPPORTED, "mixtures of rows with missing values are for the CPU");
    });
}

// --- how much work and memory it takes ---

// What else an iteration takes: covariances, their factors (d^3 / 6 for Cholesky's, as much for the inverse),
// exponentials, and memory for a block of rows.
double step_over_parameters(const Shape &mixture, PgkmCovariance type)
{
    const CovarianceShape shape(type);
    const double d = mixture.d, k = mixture.k;
    const double matrices = !shape.is_matrix() ? 0.0 : shape.is_shared ? 1.0 : k;
    const double tied = shape.is_shared ? 2.0 * k * d * d : 0.0;
    return matrices * (d * d * d / 3.0 + 20.0 * d * d) + tied + 40.0 * k * d + 20.0 * mixture.n * k +
           (matrices > 0.0 ? 3.0 : 1.0) * block_rows * d + step_operations;
}

// What threads work in that share one mixture: rows (where there are matrices centred and transformed, too)
// and responsibilities.
double bytes_of_blocks(const PgkmRequest &request, const Shape &mixture)
{
    const double rows = (CovarianceShape(request.mixture.covariance_type).is_matrix() ? 3.0 : 1.0) * (mixture.d + 8.0);
    return threads_of(request, work_of(mixtures, request)) * 8.0 * block_rows * (rows + mixture.k);
}

Work work_of_mixture(const PgkmRequest &request, const PgkmGroup &group)
{
    const PgkmMixtureOptions &options = request.mixture;
    const Shape mixture = shape_of(group, request.points.d);
    const double over_rows = em_step_products(options.covariance_type, mixture.n, mixture.k, mixture.d);
    // Of rows that lack values as if each had a pattern of its own.
    const bool by_pattern = request.may_lack_values != 0 && CovarianceShape(options.covariance_type).is_matrix();
    const double factors = by_pattern ? mixture.n * mixture.k * mixture.d * mixture.d * (mixture.d / 24.0 + 4.0) : 0.0;
    const double step = over_rows + factors + step_over_parameters(mixture, options.covariance_type);
    const double begin = all_given(options) ? 0.0 : operations_of_fit(mixture, first_clusters(options));
    const double total = CovarianceShape(options.covariance_type).is_shared ? mixture.n * mixture.d * mixture.d : 0.0;
    // The first parameters and the labels take a step each.
    const double most = fixed_operations + total + options.n_init * (begin + (options.max_iter + 2.0) * step);
    return {time_of((over_rows + factors) * std::min<double>(options.max_iter, usual_iterations) * options.n_init),
            time_of(most)};
}

double bytes_of_mixture(const PgkmRequest &request, const PgkmGroup &group)
{
    const CovarianceShape shape(request.mixture.covariance_type);
    const Shape mixture = shape_of(group, request.points.d);
    const double k = mixture.k, d = mixture.d;
    const double values = k * (shape.has_own_matrices() ? d * d : d);
    // k-means first; then sums and factors of the mixture, and up to 256 MB of copies of the sums.
    const bool weighted = group.weights != nullptr;
    const double clusters = bytes_of_fit(mixture, request.points.element, weighted, request.mixture.standardize != 0);
    const double segments = std::clamp(static_cast<double>(rows_of_sums(request, group)) / block_rows, 1.0, 64.0);
    const double copies = values + std::max(values, std::min(segments * values, 33554432.0));
    // One for all components follows from the moments of all rows.
    const double moments =
        shape.is_shared ? cpu::moments_bytes(rows_of_sums(request, group), request.points.d, 1, weighted) : 0.0;
    // The mixture goes to other servers; the lower triangles of its sums come back.
    const double asked = values + k * d + (shape.is_matrix() ? d * d : 0.0), answered = 0.5 * asked + k * (d + 1.0);
    return clusters + nodes::bytes_of_calls(request, 8.0 * asked, 8.0 * answered) +
           8.0 * (5.0 * values + copies + (shape.is_matrix() ? 4.0 * d * d : 0.0)) + 4.0 * mixture.n + moments +
           (request.n_groups == 0 ? bytes_of_blocks(request, mixture) : 0.0) +
           (request.may_lack_values == 0
                ? 0.0
                : incomplete_bytes(request.points, k, static_cast<double>(shape.size(request.points.d)),
                                   threads_of(request, work_of(mixtures, request))));
}

// What threads and the allocator take beside: 2 MB, next to nothing where rows are few.
double fixed_bytes_of_mixtures(const PgkmRequest &, double rows)
{
    return std::min(2e6, 2e5 + 1000.0 * rows);
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    return std::make_unique<MixtureModels>(fit_mixtures(request, *place, monitor));
}

} // namespace

const Algorithm mixtures = {"a mixture", check, work_of_mixture, fixed_bytes_of_mixtures, bytes_of_mixture,
                            supported,   fit};

} // namespace pgkm
