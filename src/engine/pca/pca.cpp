#include "engine/pca/pca.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/sums/moments.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "engine/pca/moments.hpp"
#include "engine/backends/session.hpp"
#include "engine/pca/symmetric_eigen.hpp"
#include "engine/job/work.hpp"

namespace pgkm {
namespace {

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

struct Covariance {
    std::int64_t n;
    std::vector<double> mean;
    std::vector<double> cross; // triangle
};

// One pass over the rows about a shift near their mean; the difference is taken off after it.
Covariance moments_on(const BackendChoice &choice, const PgkmPcaRequest &request, Monitor &monitor, const Work &work)
{
    const std::int32_t d = request.points.d;
    monitor.begin_backend(choice.table->name);
    PgkmOpen open = open_options(request.settings, monitor.host(), work);
    open.segment = request.segment;
    Session session(choice, open);
    monitor.enter(PGKM_LOADING);
    session.load(request.points);
    Covariance result = {request.points.n, sample_mean(request.points), std::vector<double>(at(triangle_size(d)))};
    std::vector<double> sums(at(d));
    PgkmProblem all = {};
    all.n_rows = result.n;
    std::vector<PgkmMoments> moments = {{result.mean.data(), sums.data(), result.cross.data()}};
    session.moments({all}, moments);
    const double n = static_cast<double>(result.n);
    double *cross = result.cross.data();
    for (std::int32_t a = 0; a < d; ++a) {
        monitor.poll();
        for (std::int32_t b = 0; b <= a; ++b)
            *cross++ -= sums[at(a)] * (sums[at(b)] / n);
    }
    for (std::int32_t f = 0; f < d; ++f)
        result.mean[at(f)] += sums[at(f)] / n;
    return result;
}

PgkmStatus has_moments(const PgkmBackend &table, PgkmError *error)
{
    return table.moments(nullptr, nullptr, 0, nullptr, error);
}

Covariance moments_of_rows(const PgkmPcaRequest &request, Monitor &monitor, std::string &notice)
{
    const Work work = work_of(request);
    Covariance result;
    on_first_backend(request.settings, work, has_moments, &notice, [&](const BackendChoice &choice) {
        result = moments_on(choice, request, monitor, work);
    });
    return result;
}

// A feature is constant when its variance is what rounding makes of none (scikit-learn's rule for
// its StandardScaler); such a one keeps the scale 1.
std::vector<double> scales_of(const Covariance &covariance)
{
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const double n = static_cast<double>(covariance.n);
    std::vector<double> scale;
    for (std::size_t f = 0; f < covariance.mean.size(); ++f) {
        const double variance =
            covariance.cross[at(triangle_size(static_cast<std::int64_t>(f)) + static_cast<std::int64_t>(f))] / n;
        const double noise = n * covariance.mean[f] * epsilon;
        scale.push_back(variance <= n * epsilon * variance + noise * noise ? 1.0 : std::sqrt(variance));
    }
    return scale;
}

// The full covariance matrix, or the correlation matrix times n / (n - 1) with scales.
std::vector<double> matrix_of(const Covariance &covariance, const std::vector<double> &scale, const Monitor &monitor)
{
    const auto d = static_cast<std::int64_t>(covariance.mean.size());
    const double divisor = static_cast<double>(std::max<std::int64_t>(covariance.n - 1, 1));
    std::vector<double> matrix(at(d * d));
    const double *cross = covariance.cross.data();
    for (std::int64_t a = 0; a < d; ++a) {
        monitor.poll();
        for (std::int64_t b = 0; b <= a; ++b) {
            double value = *cross++ / divisor;
            if (!scale.empty())
                value = value / scale[at(a)] / scale[at(b)];
            // The eigenvalues and their sum are finite, too, below this; variances of rows are.
            if (!(std::fabs(value) <= max_magnitude * max_magnitude * 4.0))
                throw Error(PGKM_INVALID, "features are too large: their squares overflow");
            matrix[at(a * d + b)] = matrix[at(b * d + a)] = value;
        }
    }
    return matrix;
}

// Rounding leaves a variance of 0 on either side of it.
double variance_of(double value) { return std::max(value, 0.0); }

// The variances' shares of their total.
std::vector<double> ratios_of(const std::vector<double> &values)
{
    double total = 0.0;
    for (const double value : values)
        total += variance_of(value);
    std::vector<double> ratio;
    for (const double value : values)
        ratio.push_back(total > 0.0 ? variance_of(value) / total : 0.0);
    return ratio;
}

// How many of the leading components are kept.
std::int32_t wanted_components(double option, std::int64_t most, const std::vector<double> &values)
{
    if (option == 0.0)
        return static_cast<std::int32_t>(most);
    if (option >= 1.0)
        return static_cast<std::int32_t>(std::min(option, static_cast<double>(most)));
    const std::vector<double> ratio = ratios_of(values);
    double share = 0.0;
    for (std::int64_t j = 0; j < most; ++j) {
        share += ratio[at(j)];
        if (share > option)
            return static_cast<std::int32_t>(j + 1);
    }
    return static_cast<std::int32_t>(most);
}

// The coordinate of largest magnitude, the first of several, is made positive.
void fix_sign(double *component, std::int32_t d)
{
    const double *largest =
        std::max_element(component, component + d, [](double x, double y) { return std::fabs(x) < std::fabs(y); });
    if (*largest < 0.0)
        for (std::int32_t f = 0; f < d; ++f)
            component[f] = -component[f];
}

PcaModel model_of(Covariance covariance, const PgkmPcaOptions &options, Monitor &monitor)
{
    PcaModel model;
    model.n = covariance.n;
    model.d = static_cast<std::int32_t>(covariance.mean.size());
    if (options.standardize != 0)
        model.scale = scales_of(covariance);
    std::vector<double> matrix = matrix_of(covariance, model.scale, monitor);
    model.mean = std::move(covariance.mean);
    std::vector<double>().swap(covariance.cross);
    monitor.enter(PGKM_ITERATING);
    const auto poll = [&] { monitor.poll(); };
    // By value: the thread that asks may be left behind.
    const auto wanted = [option = options.n_components,
                         most = std::min<std::int64_t>(model.n, model.d)](const std::vector<double> &values) {
        return wanted_components(option, most, values);
    };
    SymmetricEigen eigen = symmetric_eigen(std::move(matrix), model.d, poll, wanted);
    model.n_components = static_cast<std::int32_t>(eigen.vectors.size() / at(model.d));
    const std::vector<double> ratio = ratios_of(eigen.values);
    for (std::int32_t j = 0; j < model.n_components; ++j) {
        fix_sign(eigen.vectors.data() + std::int64_t{j} * model.d, model.d);
        model.explained_variance.push_back(variance_of(eigen.values[at(j)]));
        model.explained_variance_ratio.push_back(ratio[at(j)]);
        model.singular_values.push_back(std::sqrt(model.explained_variance.back()) *
                                        std::sqrt(static_cast<double>(model.n - 1)));
    }
    model.components = std::move(eigen.vectors);
    return model;
}

void check(const PgkmPcaRequest &request)
{
    const double wanted = request.options.n_components;
    if (request.points.n < 1 || request.points.d < 1)
        throw Error(PGKM_INVALID, "there are no rows to analyse");
    if (wanted >= 1.0 && wanted > request.points.d)
        throw Error(PGKM_INVALID,
                    "option n_components must be at most the number of features, " + std::to_string(request.points.d));
    if (request.points.d > most_eigen_features)
        throw Error(PGKM_LIMIT, "PCA of " + std::to_string(request.points.d) + " features is not possible: at most " +
                                    std::to_string(most_eigen_features) + " are");
    const std::uint64_t need = pgkm_pca_estimate(&request), limit = request.settings.memory_limit;
    if (limit != 0 && need > limit)
        throw Error(PGKM_LIMIT, "PCA of " + std::to_string(request.points.d) + " features needs an estimated " +
                                    std::to_string(need / 1024) + " kB, more than is left of pg_kmeans.memory_limit (" +
                                    std::to_string(limit / 1024) + " kB)");
}

} // namespace

PcaModel fit_pca(const PgkmPcaRequest &request, Monitor &monitor)
{
    check(request);
    const std::int32_t d = request.points.d;
    std::string notice;
    Covariance covariance = request.points.values == nullptr
                                ? Covariance{request.points.n,
                                             {request.mean, request.mean + d},
                                             {request.cross, request.cross + triangle_size(d)}}
                                : moments_of_rows(request, monitor, notice);
    PcaModel model = model_of(std::move(covariance), request.options, monitor);
    model.notice = notice;
    return model;
}

} // namespace pgkm

uint64_t pgkm_pca_estimate(const PgkmPcaRequest *request)
{
    const double d = request->points.d;
    const double eigen = pgkm::symmetric_eigen_bytes(request->points.d);
    // Before that, of rows, their moments.
    const double moments =
        request->points.values == nullptr
            ? 0.0
            : 4.0 * d * d +
                  pgkm::cpu::moments_bytes(request->points.n, request->points.d,
                                           pgkm::useful_threads(request->settings, pgkm::work_of(*request)));
    // And what threads and the allocator take beside: 4 MB, next to nothing where rows are few.
    const double beside = std::min(4e6, 2e5 + 2000.0 * static_cast<double>(request->points.n));
    return static_cast<uint64_t>(std::max(eigen, moments) + beside);
}
