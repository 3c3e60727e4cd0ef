// rows.cpp - single rows under a mixture: what gmm_predict and its siblings call.
#include <cmath>
#include <numbers>

#include "backend/covariance.hpp"
#include "engine/api.h"
#include "numeric/platform.hpp"

namespace {

// |W (row - mean)|^2 of component j.
double square_of(const PgkmMixture &mixture, std::int64_t j, std::int64_t d, const double *row)
{
    const pgkm::CovarianceShape shape(mixture.covariance_type);
    const double *const mean = mixture.means + j * d;
    const double *const factor = mixture.factors + (shape.is_shared ? 0 : j * shape.size(d));
    double square = 0.0;
    for (std::int64_t c = 0; c < d; ++c) {
        double value = 0.0;
        if (shape.is_matrix())
            for (std::int64_t f = 0; f <= c; ++f)
                value += factor[c * d + f] * (row[f] - mean[f]);
        else
            value = factor[shape.dimensions == 1 ? c : 0] * (row[c] - mean[c]);
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
