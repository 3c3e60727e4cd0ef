// rows.cpp - single rows under a mixture: what gmm_predict and its siblings call.
#include <cmath>
#include <numbers>

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace {

// |W (row - mean)|^2 of component j.
double square_of(const PgkmMixture &mixture, std::int64_t j, std::int64_t d, const double *row)
{
    const double *const mean = mixture.means + j * d;
    double square = 0.0;
    for (std::int64_t c = 0; c < d; ++c) {
        double value = 0.0;
        if (mixture.covariance_type == PGKM_COVARIANCE_DIAG) {
            value = mixture.factors[j * d + c] * (row[c] - mean[c]);
        } else if (mixture.covariance_type == PGKM_COVARIANCE_SPHERICAL) {
            value = mixture.factors[j] * (row[c] - mean[c]);
        } else {
            const std::int64_t matrix = mixture.covariance_type == PGKM_COVARIANCE_FULL ? j : 0;
            const double *const factor = mixture.factors + (matrix * d + c) * d;
            for (std::int64_t f = 0; f <= c; ++f)
                value += factor[f] * (row[f] - mean[f]);
        }
        square += value * value;
    }
    return square;
}

} // namespace

double pgkm_mixture_row(const PgkmMixture *mixture, int32_t d, const double *row, double *posterior, int32_t *label)
{
    const double constant = -0.5 * d * std::log(2.0 * std::numbers::pi);
    *label = 0;
    for (std::int32_t j = 0; j < mixture->k; ++j) {
        posterior[j] =
            mixture->log_weights[j] + mixture->log_determinants[j] + constant - 0.5 * square_of(*mixture, j, d, row);
        if (posterior[j] > posterior[*label])
            *label = j;
    }
    const double largest = posterior[*label];
    double sum = 0.0;
    for (std::int32_t j = 0; j < mixture->k; ++j)
        sum += posterior[j] = std::exp(posterior[j] - largest);
    for (std::int32_t j = 0; j < mixture->k; ++j)
        posterior[j] /= sum;
    return largest + std::log(sum);
}
