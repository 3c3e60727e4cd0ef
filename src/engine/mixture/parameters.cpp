// parameters.cpp - the M step, and the factors of covariances.
#include "engine/mixture/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpu/cpu_backend.hpp"
#include "engine/backends/moments.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// A total variance may be so many times what is left of it within the components: 20 bits of 53 are lost then.
constexpr double most_between = 0x1p20;

[[noreturn]] void singular(PgkmCovariance type, std::int64_t component)
{
    const std::string which =
        type == PGKM_COVARIANCE_TIED ? "the covariance" : "the covariance of component " + std::to_string(component);
    throw Error(PGKM_INVALID, which + " is singular: raise reg_covar, lower k, or leave out features that depend on "
                                      "one another");
}

// Row by row (Cholesky-Banachiewicz): the lower triangle of `matrix`, all that is read, becomes L with
// L L' = matrix. False when a pivot is what rounding makes of 0.
bool cholesky(double *matrix, std::int64_t d, const Poll &poll)
{
    for (std::int64_t i = 0; i < d; ++i) {
        poll();
        double *const row = matrix + i * d;
        const double diagonal = row[i];
        for (std::int64_t j = 0; j < i; ++j)
            row[j] = (row[j] - cpu::dot(row, matrix + j * d, j)) / matrix[j * d + j];
        const double pivot = diagonal - cpu::dot(row, row, i);
        if (!(pivot > static_cast<double>(d) * epsilon * diagonal) || !(pivot > 0.0) || !std::isfinite(pivot))
            return false;
        row[i] = std::sqrt(pivot);
    }
    return true;
}

// W = inverse of L, both lower triangular by rows; there are zeros in W.
void invert(const double *lower, std::int64_t d, double *inverse, const Poll &poll)
{
    for (std::int64_t i = 0; i < d; ++i) {
        poll();
        double *const row = inverse + i * d;
        const double pivot = lower[i * d + i];
        for (std::int64_t j = 0; j < i; ++j)
            cpu::add(row, -lower[i * d + j] / pivot, inverse + j * d, j + 1);
        row[i] = 1.0 / pivot;
    }
}

double log_diagonal(const double *matrix, std::int64_t d)
{
    double sum = 0.0;
    for (std::int64_t i = 0; i < d; ++i)
        sum += std::log(matrix[i * d + i]);
    return sum;
}

// The k x d (diag) or k (spherical) factors of variances, or of precisions.
void scalar_factors(const MixtureParameters &parameters, const double *values, bool precisions, MixtureFactors &out)
{
    const std::int64_t per_component = parameters.type == PGKM_COVARIANCE_DIAG ? parameters.d : 1;
    for (std::int64_t j = 0; j < parameters.k; ++j) {
        double sum = 0.0;
        for (std::int64_t f = 0; f < per_component; ++f) {
            const double value = values[j * per_component + f];
            const double factor = precisions ? std::sqrt(value) : 1.0 / std::sqrt(value);
            if (precisions && !(value > 0.0))
                throw Error(PGKM_INVALID, "option precisions_init must hold positive values");
            if (!(value > 0.0) || !std::isfinite(factor))
                singular(parameters.type, j);
            out.factors.push_back(factor);
            sum += std::log(factor);
        }
        out.log_determinants.push_back(per_component == 1 ? sum * parameters.d : sum);
    }
}

// W of a precision matrix: the factor U U' = precision with U upper triangular, transposed. U comes
// from Cholesky's method on the matrix with rows and columns in reverse.
bool factor_precision(const double *precision, std::int64_t d, double *factor, const Poll &poll)
{
    LargeArray<double> reversed(at(d * d));
    for (std::int64_t i = 0; i < d; ++i) {
        poll();
        std::reverse_copy(precision + (d - 1 - i) * d, precision + (d - i) * d, reversed.begin() + i * d);
    }
    if (!cholesky(reversed.data(), d, poll))
        return false;
    for (std::int64_t c = 0; c < d; ++c) {
        poll();
        for (std::int64_t f = 0; f <= c; ++f)
            factor[c * d + f] = reversed[at((d - 1 - f) * d + (d - 1 - c))];
    }
    return true;
}

// Appends d x d zeros, a row between two polls, to an array that has room.
double *zero_matrix(std::vector<double> &values, std::int64_t d, const Poll &poll)
{
    const std::size_t begin = values.size();
    for (std::int64_t i = 0; i < d; ++i) {
        poll();
        values.resize(values.size() + at(d), 0.0);
    }
    return values.data() + begin;
}

void matrix_factors(const MixtureParameters &parameters, const double *values, bool precisions, const Poll &poll,
                    MixtureFactors &out)
{
    const std::int64_t d = parameters.d, size = d * d;
    const std::int64_t matrices = parameters.type == PGKM_COVARIANCE_TIED ? 1 : parameters.k;
    out.factors.reserve(at(matrices * size));
    LargeArray<double> lower(at(size));
    for (std::int64_t j = 0; j < matrices; ++j) {
        double *const factor = zero_matrix(out.factors, d, poll);
        if (precisions) {
            if (!factor_precision(values + j * size, d, factor, poll))
                throw Error(PGKM_INVALID, "option precisions_init must hold positive definite matrices");
        } else {
            for (std::int64_t i = 0; i < d; ++i) {
                poll();
                std::copy_n(values + j * size + i * d, i + 1, lower.begin() + i * d);
            }
            if (!cholesky(lower.data(), d, poll))
                singular(parameters.type, j);
            invert(lower.data(), d, factor, poll);
        }
        out.log_determinants.push_back(log_diagonal(factor, d));
    }
    out.log_determinants.resize(at(parameters.k), out.log_determinants[0]); // tied: the same for all
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
    if (parameters.type == PGKM_COVARIANCE_FULL) {
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
        if (parameters.type == PGKM_COVARIANCE_DIAG)
            out[f] = std::max(variance, 0.0) + reg_covar;
        sum += variance + reg_covar;
    }
    // Spherical: a backend may leave one feature what is another's.
    if (parameters.type == PGKM_COVARIANCE_SPHERICAL)
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
        cpu::add(covariance + a * d, 1.0, total.matrix.data() + a * d, d);
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
            cpu::add(covariance + a * d, -mass / all * apart[at(a)], apart.data(), d);
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

PgkmMixture MixtureFactors::view(const MixtureParameters &parameters) const
{
    return {parameters.k, type, log_weights.data(), parameters.means.data(), factors.data(), log_determinants.data(),
            nullptr};
}

void MixtureFactors::make_full(std::int32_t d, const Poll &poll)
{
    const std::vector<double> one = std::move(factors);
    const std::size_t k = log_weights.size();
    factors.clear();
    factors.reserve(k * one.size());
    for (std::size_t i = 0; i < k * at(d); ++i) {
        poll();
        const auto row = one.begin() + static_cast<std::ptrdiff_t>(i % at(d)) * d;
        factors.insert(factors.end(), row, row + d);
    }
    type = PGKM_COVARIANCE_FULL;
}

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
    const std::int64_t covariance_size =
        parameters.type == PGKM_COVARIANCE_TIED ? 0 : pgkm_covariance_size(parameters.type, 1, parameters.d);
    const std::int64_t second_size = static_cast<std::int64_t>(sums.second.size()) / k;
    // As scikit-learn: no division by 0 where a component has lost its rows.
    std::vector<double> masses = sums.masses, drift(at(d));
    double all = 0.0;
    for (double &mass : masses)
        all += mass += 10.0 * epsilon * sums.mean_weight;
    if (parameters.type == PGKM_COVARIANCE_TIED) {
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
        cpu::add(parameters.means.data() + j * d, 1.0, drift.data(), d);
    }
    require_finite(parameters.means.data(), k * d, poll);
    require_finite(parameters.covariances.data(), static_cast<std::int64_t>(parameters.covariances.size()), poll);
    return true;
}

MixtureFactors factorise(const MixtureParameters &parameters, const Poll &poll, const double *precisions)
{
    const bool given = precisions != nullptr;
    const double *const values = given ? precisions : parameters.covariances.data();
    MixtureFactors out;
    out.type = parameters.type;
    for (const double weight : parameters.weights)
        out.log_weights.push_back(std::log(weight));
    if (parameters.type == PGKM_COVARIANCE_FULL || parameters.type == PGKM_COVARIANCE_TIED)
        matrix_factors(parameters, values, given, poll, out);
    else
        scalar_factors(parameters, values, given, out);
    return out;
}

double parameter_count(PgkmCovariance type, std::int64_t k, std::int64_t d)
{
    const double components = static_cast<double>(k), features = static_cast<double>(d);
    const bool symmetric = type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED;
    const auto whole = static_cast<double>(factors_size(type, k, d));
    const double covariances = symmetric ? whole / features * (features + 1.0) / 2.0 : whole;
    return covariances + components * features + components - 1.0;
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

PgkmStatus pgkm_mixture_factors(PgkmCovariance type, int32_t k, int32_t d, const double *covariances, double *factors,
                                double *log_determinants, PgkmInterrupted interrupted, PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        pgkm::MixtureParameters parameters;
        parameters.type = type;
        parameters.k = k;
        parameters.d = d;
        parameters.covariances.assign(covariances, covariances + pgkm_covariance_size(type, k, d));
        const pgkm::MixtureFactors found = pgkm::factorise(parameters, pgkm::poll_for(interrupted));
        std::copy(found.factors.begin(), found.factors.end(), factors);
        std::copy(found.log_determinants.begin(), found.log_determinants.end(), log_determinants);
    });
}
