// missing.cpp - values that rows lack, which are NaN until then: the mean of their feature takes their place.
//
// Sums are the integers of the contract, so that the mean does not depend on the order of rows.
#include "engine/rows/missing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/update.hpp"
#include "engine/api.h"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t values_per_poll = 1 << 18;

} // namespace

template <typename T>
std::int32_t fill_missing(T *values, const PgkmPoints &points, double *means, const std::function<void()> &poll)
{
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::int32_t d = points.d;
    const auto for_each = [&](const auto &visit) {
        const std::int64_t rows_per_poll = values_per_poll / d + 1;
        for (std::int64_t row = 0; row < points.n; ++row) {
            if (row % rows_per_poll == 0)
                poll();
            for (std::int32_t f = 0; f < d; ++f)
                visit(row, f, values[row * d + f]);
        }
    };
    std::vector<double> low(at(d), infinity), high(at(d), -infinity);
    bool missing = false;
    for_each([&](std::int64_t, std::int32_t f, T value) {
        missing = missing || std::isnan(value);
        low[at(f)] = std::fmin(low[at(f)], static_cast<double>(value));
        high[at(f)] = std::fmax(high[at(f)], static_cast<double>(value));
    });
    const double heaviest =
        points.weights == nullptr ? 1.0 : *std::max_element(points.weights, points.weights + points.n);
    std::vector<PgkmFeatureScale> scales;
    for (std::int32_t f = 0; f < d; ++f) {
        if (!(low[at(f)] <= high[at(f)]))
            return f + 1;
        scales.push_back(sum_scale(low[at(f)], high[at(f)], heaviest));
    }
    PgkmProblem problem = {};
    problem.feature_scales = scales.data();
    problem.weight_exponent = points.weights == nullptr ? 0 : scale_exponent(heaviest);
    std::vector<Int128> totals(at(d), 0), masses(at(d), 0);
    for_each([&](std::int64_t row, std::int32_t f, T value) {
        if (std::isnan(value))
            return;
        totals[at(f)] += row_feature<T>(points, problem, row, f);
        masses[at(f)] += row_mass(points, problem, row);
    });
    for (std::int32_t f = 0; f < d; ++f) { // no mass beside the heaviest row: any value will do
        const PgkmFeatureScale &scale = scales[at(f)];
        const double mean = masses[at(f)] == 0 ? low[at(f)]
                                               : mean_of(totals[at(f)], masses[at(f)], scale.origin, scale.exponent,
                                                         problem.weight_exponent);
        means[f] = static_cast<T>(mean);
    }
    if (missing)
        for_each([&](std::int64_t, std::int32_t f, T &value) {
            if (std::isnan(value))
                value = static_cast<T>(means[f]);
        });
    return 0;
}

template std::int32_t fill_missing<float>(float *, const PgkmPoints &, double *, const std::function<void()> &);
template std::int32_t fill_missing<double>(double *, const PgkmPoints &, double *, const std::function<void()> &);

} // namespace pgkm

PgkmStatus pgkm_fill_missing(void *values, PgkmElement element, int64_t n, int32_t d, const double *weights,
                             double *means, int32_t *feature, PgkmInterrupted interrupted, PgkmError *error)
{
    using namespace pgkm;
    const PgkmPoints points = {values, element, n, d, weights};
    return guarded(error, [&] {
        const auto poll = [interrupted] {
            if (interrupted != nullptr && interrupted() != 0)
                throw Error(PGKM_CANCELLED, "cancelled");
        };
        *feature = element == PGKM_FLOAT32 ? fill_missing(static_cast<float *>(values), points, means, poll)
                                           : fill_missing(static_cast<double *>(values), points, means, poll);
    });
}
