// mixture.hpp - one E step and the sums of the M step in the plainest code: one row
// after the other, sums in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// |W (x - mean_j)|^2 for a difference from the mean.
inline double reference_square(const PgkmMixture &mixture, std::int32_t j, const std::vector<double> &difference)
{
    const std::size_t d = difference.size(), component = static_cast<std::size_t>(j);
    double square = 0.0;
    for (std::size_t c = 0; c < d; ++c) {
        double value = 0.0;
        switch (mixture.covariance_type) {
        case PGKM_COVARIANCE_FULL:
        case PGKM_COVARIANCE_TIED: {
            const std::size_t matrix = mixture.covariance_type == PGKM_COVARIANCE_FULL ? component : 0;
            for (std::size_t f = 0; f <= c; ++f)
                value += mixture.factors[(matrix * d + c) * d + f] * difference[f];
            break;
        }
        case PGKM_COVARIANCE_DIAG:
            value = mixture.factors[component * d + c] * difference[c];
            break;
        case PGKM_COVARIANCE_SPHERICAL:
            value = mixture.factors[component] * difference[c];
            break;
        }
        square += value * value;
    }
    return square;
}

template <typename T>
void reference_em_step_of(const PgkmPoints &points, const PgkmProblem &problem, const PgkmMixture &mixture,
                          PgkmMixtureSums &out)
{
    const auto d = static_cast<std::size_t>(points.d), k = static_cast<std::size_t>(mixture.k);
    const bool full = mixture.covariance_type == PGKM_COVARIANCE_FULL;
    const std::size_t second_size = full ? d * (d + 1) / 2 : d;
    std::vector<long double> masses(k), first(k * d), second(k * second_size);
    std::vector<std::vector<double>> difference(k, std::vector<double>(d));
    std::vector<double> density(k);
    long double log_likelihood = 0.0;
    for (std::int64_t i = 0; i < problem.n_rows; ++i) {
        const double weight = points.weights == nullptr ? 1.0 : points.weights[problem.first_row + i];
        const T *const x = static_cast<const T *>(points.values) + (problem.first_row + i) * points.d;
        for (std::size_t j = 0; j < k; ++j)
            for (std::size_t f = 0; f < d; ++f)
                difference[j][f] = static_cast<double>(x[f]) - mixture.means[j * d + f];
        if (mixture.labels != nullptr) {
            std::fill(density.begin(), density.end(), 0.0);
            density[static_cast<std::size_t>(mixture.labels[i])] = weight;
        } else {
            for (std::size_t j = 0; j < k; ++j)
                density[j] = mixture.log_weights[j] + mixture.log_determinants[j] -
                             0.5 * static_cast<double>(d) * std::log(2.0 * std::numbers::pi) -
                             0.5 * reference_square(mixture, static_cast<std::int32_t>(j), difference[j]);
            const auto largest = std::max_element(density.begin(), density.end());
            if (out.labels != nullptr)
                out.labels[i] = static_cast<std::int32_t>(largest - density.begin());
            const double top = *largest;
            double sum = 0.0;
            for (double &value : density)
                sum += value = std::exp(value - top);
            for (double &value : density)
                value *= weight / sum;
            log_likelihood += weight * (top + std::log(sum));
        }
        for (std::size_t j = 0; j < k; ++j) {
            masses[j] += density[j];
            for (std::size_t a = 0, at = j * second_size; a < d; ++a) {
                first[j * d + a] += static_cast<long double>(density[j]) * difference[j][a];
                for (std::size_t b = full ? 0 : a; b <= a; ++b, ++at)
                    second[at] += static_cast<long double>(density[j]) * difference[j][a] * difference[j][b];
            }
        }
    }
    out.log_likelihood = static_cast<double>(log_likelihood);
    if (out.masses == nullptr)
        return;
    const auto rounded = [](long double sum) { return static_cast<double>(sum); };
    std::transform(masses.begin(), masses.end(), out.masses, rounded);
    std::transform(first.begin(), first.end(), out.first, rounded);
    if (mixture.covariance_type != PGKM_COVARIANCE_TIED)
        std::transform(second.begin(), second.end(), out.second, rounded);
}

} // namespace pgkm
