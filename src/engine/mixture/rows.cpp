// rows.cpp - single rows under a mixture: what gmm_predict and its siblings call.
#include <cmath>
#include <numbers>

#include "backend/covariance.hpp"
#include "engine/api.h"
#include "engine/mixture/missing.hpp"
#include "numeric/error.hpp"
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
    for (std::int32_t j = 0; j < mixture->k; ++j)
        posterior[j] =
            mixture->log_weights[j] + mixture->log_determinants[j] + constant - 0.5 * square_of(*mixture, j, d, row);
    return pgkm::share_out(mixture->k, posterior, label);
}

PgkmStatus pgkm_mixture_incomplete_row(const PgkmMixture *mixture, const double *covariances, int32_t d,
                                       const double *row, double *posterior, int32_t *label, double *log_density,
                                       PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        const pgkm::MissingPattern pattern = pgkm::pattern_of(row, d);
        const pgkm::RowMatrix rows = Eigen::Map<const Eigen::RowVectorXd>(row, d);
        for (std::int64_t j = 0; j < mixture->k; ++j) {
            const pgkm::Component component(*mixture, covariances, d, j);
            posterior[j] = pgkm::expected_rows(pattern, component, rows, [] {}).log_densities[0];
        }
        *log_density = pgkm::share_out(mixture->k, posterior, label);
    });
}
