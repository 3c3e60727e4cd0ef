// parameters.cpp - the M step.
#include "engine/mixture/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/covariance.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// A total variance may be so many times what is left of it within the components: 20 bits of 53 are lost then.
constexpr double most_between = 0x1p20;

// y[i] += a x[i]
void add(double *y, double a, const double *x, std::int64_t n)
{
    for (std::int64_t i = 0; i < n; ++i)
        y[i] += a * x[i];
}

void require_finite(const double *values, std::int64_t count, const Poll &poll)
{
    constexpr std::int64_t values_between_polls = 1 << 16;
    for (std::int64_t i = 0; i < count; i += values_between_polls) {
        poll();
        if (!std::all_of(values + i, values + std::min(count, i + values_between_polls),
                         [](double value) { return std::isfinite(value); }))
            throw Error(PGKM_INVALID, "features are too large: their squares overflow");
    }
}

// One component's covariance about its new mean, which lies `drift` (d values) from the old one.
void covariance_of(const MixtureParameters &parameters, const double *second, double mass, const double *drift,
                   double reg_covar, double *out, const Poll &poll)
{
    const std::int64_t d = parameters.d;
    const CovarianceShape shape(parameters.type);
    if (shape.is_matrix()) {
        for (std::int64_t a = 0; a < d; ++a) {
            poll();
            for (std::int64_t b = 0; b <= a; ++b)
                out[a * d + b] = out[b * d + a] = *second++ / mass - drift[a] * drift[b];
        }
        for (std::int64_t a = 0; a < d; ++a)
            out[a * d + a] = std::max(out[a * d + a], 0.0) + reg_covar;
        return;
    }
    double sum = 0.0;
    for (std::int64_t f = 0; f < d; ++f) {
        const double variance = second[f] / mass - drift[f] * drift[f];
        if (shape.dimensions == 1)
            out[f] = std::max(variance, 0.0) + reg_covar;
        sum += variance + reg_covar;
    }
    // Spherical: a backend may leave one feature what is another's.
    if (shape.dimensions == 0)
        *out = std::max(sum / static_cast<double>(d), reg_covar);
}

// The total covariance less what lies between the components, whose means are still the old ones. The
// new ones are taken without the mass that keeps divisions from 0: a component that has lost its rows
// may lie so far from them that even so little mass outweighs their covariance.
void add_total_less_between(const MixtureParameters &parameters, const MixtureSums &sums, double all,
                            const TotalCovariance &total, double *covariance, const Poll &poll)
{
    const std::int64_t d = parameters.d;
    for (std::int64_t a = 0; a < d; ++a) {
        poll();
        std::copy_n(total.matrix.data() + a * d, d, covariance + a * d);
    }
    std::vector<double> apart(at(d));
    for (std::int64_t j = 0; j < parameters.k; ++j) {
        const double mass = sums.masses[at(j)];
        if (mass == 0.0)
            continue;
        for (std::int64_t f = 0; f < d; ++f)
            apart[at(f)] = sums.first[at(j * d + f)] / mass + (parameters.means[at(j * d + f)] - total.mean[at(f)]);
        for (std::int64_t a = 0; a < d; ++a) {
            poll();
            add(covariance + a * d, -mass / all * apart[at(a)], apart.data(), d);
        }
    }
}

// Each component's squares about its own new mean.
void add_within(const MixtureSums &sums, std::int64_t k, std::int64_t d, double all, double *covariance,
                const Poll &poll)
{
    const double *second = sums.second.data();
    for (std::int64_t j = 0; j < k; ++j) {
        const double *const first = sums.first.data() + j * d;
        const double mass = sums.masses[at(j)];
        for (std::int64_t a = 0; a < d; ++a) {
            poll();
            const double drift = mass == 0.0 ? 0.0 : first[a] / mass;
            for (std::int64_t b = 0; b <= a; ++b)
                covariance[a * d + b] += (*second++ - drift * first[b]) / all;
        }
    }
    for (std::int64_t a = 0; a < d; ++a) {
        poll();
        for (std::int64_t b = 0; b < a; ++b)
            covariance[b * d + a] = covariance[a * d + b];
    }
}

// False where too few digits are left.
bool tied_covariance(const MixtureParameters &parameters, const MixtureSums &sums, double all,
                     const TotalCovariance &total, double reg_covar, LargeArray<double> &covariance, const Poll &poll)
{
    const std::int64_t d = parameters.d;
    covariance.resize(at(d * d));
    for (std::int64_t a = 0; a < d; ++a) {
        poll();
        std::fill_n(covariance.begin() + a * d, d, 0.0);
    }
    if (sums.type == PGKM_COVARIANCE_FULL)
        add_within(sums, parameters.k, d, all, covariance.data(), poll);
    else
        add_total_less_between(parameters, sums, all, total, covariance.data(), poll);
    bool sound = true;
    for (std::int64_t i = 0; i < d * d; i += d + 1) {
        covariance[at(i)] += reg_covar;
        sound =
            sound && (sums.type == PGKM_COVARIANCE_FULL || !(total.matrix[at(i)] > most_between * covariance[at(i)]));
    }
    return sound;
}

} // namespace

MixtureSums::MixtureSums(PgkmCovariance type, std::int64_t k, std::int32_t d)
    : type(type), masses(at(k)), first(at(k * d)),
      second(at(second_size(type, k, d))), view{0.0, masses.data(), first.data(), second.data(), nullptr}
{
}

double MixtureSums::mass() const
{
    return std::accumulate(masses.begin(), masses.end(), 0.0);
}

bool maximise(MixtureParameters &parameters, const MixtureSums &sums, const TotalCovariance &total, double reg_covar,
              const Poll &poll)
{
    const std::int64_t k = parameters.k, d = parameters.d;
    const CovarianceShape shape(parameters.type);
    const std::int64_t covariance_size = shape.is_shared ? 0 : shape.size(d);
    const std::int64_t second_size = static_cast<std::int64_t>(sums.second.size()) / k;
    // As scikit-learn: no division by 0 where a component has lost its rows.
    std::vector<double> masses = sums.masses, drift(at(d));
    double all = 0.0;
    for (double &mass : masses)
        all += mass += 10.0 * epsilon * sums.mean_weight;
    if (shape.is_shared) {
        LargeArray<double> covariance;
        if (!tied_covariance(parameters, sums, all, total, reg_covar, covariance, poll))
            return false;
        parameters.covariances = std::move(covariance);
    } else {
        parameters.covariances.resize(at(covariance_size * k));
    }
    for (std::int64_t j = 0; j < k; ++j) {
        parameters.weights[at(j)] = masses[at(j)] / all;
        for (std::int64_t f = 0; f < d; ++f)
            drift[at(f)] = sums.first[at(j * d + f)] / masses[at(j)];
        if (covariance_size > 0)
            covariance_of(parameters, sums.second.data() + j * second_size, masses[at(j)], drift.data(), reg_covar,
                          parameters.covariances.data() + j * covariance_size, poll);
        add(parameters.means.data() + j * d, 1.0, drift.data(), d);
    }
    require_finite(parameters.means.data(), k * d, poll);
    require_finite(parameters.covariances.data(), static_cast<std::int64_t>(parameters.covariances.size()), poll);
    return true;
}

double parameter_count(PgkmCovariance type, std::int64_t k, std::int64_t d)
{
    const CovarianceShape shape(type);
    const auto components = static_cast<double>(k), features = static_cast<double>(d);
    const auto of_one = static_cast<double>(shape.is_matrix() ? triangle_size(d) : shape.size(d));
    return static_cast<double>(shape.count(k)) * of_one + components * features + components - 1.0;
}

} // namespace pgkm

const char *pgkm_covariance_name(PgkmCovariance type)
{
    static const char *const names[] = {"full", "tied", "diag", "spherical"};
    return names[type];
}

int64_t pgkm_covariance_size(PgkmCovariance type, int64_t k, int32_t d)
{
    return pgkm::factors_size(type, k, d); // as many
}

int32_t pgkm_covariance_shape(PgkmCovariance type, int32_t k, int32_t d, int32_t *extents)
{
    const std::vector<std::int64_t> found = pgkm::CovarianceShape(type).extents(k, d);
    std::copy(found.begin(), found.end(), extents);
    return static_cast<int32_t>(found.size());
}
