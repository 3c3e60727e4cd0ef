// pca.cpp - principal components: moments of the rows by a backend, then the eigenvectors of their covariances. Or of
// moments that were merged.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/cpu_backend.hpp"
#include "engine/backends/moments.hpp"
#include "engine/job/algorithm.hpp"
#include "engine/nodes/chunk_sums.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/pca/symmetric_eigen.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// A feature is constant when its variance is what rounding makes of none (scikit-learn's rule for
// its StandardScaler); such a one keeps the scale 1.
std::vector<double> scales_of(const CrossMoments &moments)
{
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const double n = static_cast<double>(moments.n);
    std::vector<double> scale;
    for (std::size_t f = 0; f < moments.mean.size(); ++f) {
        const double variance =
            moments.cross[at(triangle_size(static_cast<std::int64_t>(f)) + static_cast<std::int64_t>(f))] /
            moments.mass;
        const double noise = n * moments.mean[f] * epsilon;
        scale.push_back(variance <= n * epsilon * variance + noise * noise ? 1.0 : std::sqrt(variance));
    }
    return scale;
}

// Degrees of freedom: a row of weight w counts like w rows.
double freedom_of(const CrossMoments &moments)
{
    if (moments.mass <= 1.0 && moments.n > 1)
        throw Error(PGKM_INVALID, "the weights must add up to more than 1: a row of weight w counts like w rows");
    return std::max(moments.mass - 1.0, 0.0);
}

// The full covariance matrix, or the correlation matrix times mass / (mass - 1) with scales.
std::vector<double> matrix_of(const CrossMoments &moments, const std::vector<double> &scale, const Monitor &monitor)
{
    const auto d = static_cast<std::int64_t>(moments.mean.size());
    const double freedom = freedom_of(moments), divisor = freedom > 0.0 ? freedom : 1.0;
    std::vector<double> matrix;
    matrix.reserve(at(d * d));
    const double *cross = moments.cross.data();
    for (std::int64_t a = 0; a < d; ++a) {
        monitor.poll();
        matrix.resize(at((a + 1) * d));
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
double variance_of(double value)
{
    return std::max(value, 0.0);
}

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

class Components : public Models {
  public:
    Components(CrossMoments &&moments, const PgkmPcaOptions &options) : moments_(std::move(moments)), options_(options)
    {
    }
    void finish(Monitor &monitor) override;
    void get(std::int64_t, PgkmResult *result) const override
    {
        result->k = static_cast<std::int32_t>(variance_.size());
        result->d = static_cast<std::int32_t>(moments_.mean.size());
        result->n = moments_.n;
        result->mean = moments_.mean.data();
        result->scale = data_or_null(scale_);
        result->components = components_.data();
        result->explained_variance = variance_.data();
        result->explained_variance_ratio = ratio_.data();
        result->singular_values = singular_values_.data();
    }

  private:
    CrossMoments moments_; // the mean alone after finish()
    PgkmPcaOptions options_;
    std::vector<double> scale_;                              // d, or empty
    std::vector<double> components_;                         // one in each row of d
    std::vector<double> variance_, ratio_, singular_values_; // of each
};

// The eigenvectors, by the CPU.
void Components::finish(Monitor &monitor)
{
    const auto d = static_cast<std::int32_t>(moments_.mean.size());
    if (options_.standardize != 0)
        scale_ = scales_of(moments_);
    std::vector<double> matrix = matrix_of(moments_, scale_, monitor);
    LargeArray<double>().swap(moments_.cross);
    monitor.enter(PGKM_ITERATING);
    // By value: the thread that asks may be left behind.
    const auto wanted = [option = options_.n_components, most = std::min<std::int64_t>(moments_.n, d)](
                            const std::vector<double> &values) { return wanted_components(option, most, values); };
    SymmetricEigen eigen = symmetric_eigen(
        std::move(matrix), d, [&] { monitor.poll(); }, wanted);
    ratio_ = ratios_of(eigen.values);
    ratio_.resize(eigen.vectors.size() / at(d));
    for (std::size_t j = 0; j < ratio_.size(); ++j) {
        monitor.poll();
        fix_sign(eigen.vectors.data() + j * at(d), d);
        variance_.push_back(variance_of(eigen.values[j]));
        singular_values_.push_back(std::sqrt(variance_.back()) * std::sqrt(freedom_of(moments_)));
    }
    components_ = std::move(eigen.vectors);
}

void check(const PgkmRequest &request, const PgkmGroup &)
{
    const double wanted = request.pca.n_components;
    if (wanted >= 1.0 && wanted > request.points.d)
        throw Error(PGKM_INVALID,
                    "option n_components must be at most the number of features, " + std::to_string(request.points.d));
    if (request.points.d > most_eigen_features)
        throw Error(PGKM_LIMIT, "PCA of " + std::to_string(request.points.d) + " features is not possible: at most " +
                                    std::to_string(most_eigen_features) + " are");
}

Work work(const PgkmRequest &request, const PgkmGroup &group)
{
    const double d = request.points.d;
    const double products = has_rows(request) ? static_cast<double>(group.n) * d * d : 0.0;
    // Eigenvectors are the CPU's.
    return {time_of(products), time_of(fixed_operations + products + 5.0 * d * d * d + 20.0 * d * d)};
}

// What threads and the allocator take: 4 MB, next to nothing where rows are few.
double fixed_bytes(const PgkmRequest &, double rows)
{
    return std::min(4e6, 2e5 + 2000.0 * rows);
}

// CrossMoments, if there are none, and then eigenvectors.
double bytes(const PgkmRequest &request, const PgkmGroup &group)
{
    const double d = request.points.d;
    const double eigen = symmetric_eigen_bytes(request.points.d);
    if (!has_rows(request))
        return eigen;
    const bool weighted = request.points.weights != nullptr;
    const double labels = weighted ? 4.0 * static_cast<double>(group.n) : 0.0;
    return std::max(eigen, 4.0 * d * d + labels + nodes::bytes_of_calls(request, 8.0 * d, 4.0 * d * (d + 3.0)) +
                               cpu::moments_bytes(rows_of_sums(request, group), request.points.d,
                                                  threads_of(request, work(request, group)), weighted));
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    const PgkmPoints &points = request.points;
    if (place == nullptr)
        return std::make_unique<Components>(CrossMoments{points.n,
                                                         request.mass,
                                                         {request.mean, request.mean + points.d},
                                                         {},
                                                         {request.cross, request.cross + triangle_size(points.d)}},
                                            request.pca);
    place->session.load_own(points);
    std::vector<PgkmProblem> all(1);
    all[0].n_rows = groups_of(request)[0].n;
    std::vector<double> shift;
    if (request.stream != nullptr)
        shift = nodes::mean_of_sample(*request.stream, points.d, {}, monitor.host());
    std::vector<CrossMoments> moments = moments_of(place->session, points, all, shift);
    moments[0].centre([&] { monitor.poll(); });
    return std::make_unique<Components>(std::move(moments[0]), request.pca);
}

} // namespace

const Algorithm pca = {"PCA", check, work, fixed_bytes, bytes, nullptr, fit};

} // namespace pgkm
