// missing.cpp - values that rows lack, which are NaN until then: the mean of their feature takes their place.
//
// Sums are the integers of the contract, so that the mean does not depend on the order of rows.
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

template <typename T>
class Filler {
  public:
    Filler(T *values, const PgkmPoints &points, double *means, PgkmInterrupted interrupted)
        : values_(values), points_(points), interrupted_(interrupted), low_(at(points.d), infinity),
          high_(at(points.d), -infinity), means_(means)
    {
    }

    // 0, or the number (from 1) of a feature without any value.
    std::int32_t run()
    {
        const bool missing = take_ranges();
        for (std::int32_t f = 0; f < points_.d; ++f)
            if (!(low_[at(f)] <= high_[at(f)]))
                return f + 1;
        take_means();
        if (missing)
            fill();
        return 0;
    }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    void fill()
    {
        for_each([this](std::int64_t, std::int32_t f, T &value) {
            if (std::isnan(value))
                value = static_cast<T>(means_[f]);
        });
    }

    template <typename Visit>
    void for_each(const Visit &visit)
    {
        const std::int64_t rows_per_poll = values_per_poll / points_.d + 1;
        for (std::int64_t row = 0; row < points_.n; ++row) {
            if (row % rows_per_poll == 0 && interrupted_ != nullptr && interrupted_() != 0)
                throw Error(PGKM_CANCELLED, "cancelled");
            for (std::int32_t f = 0; f < points_.d; ++f)
                visit(row, f, values_[row * points_.d + f]);
        }
    }

    // False where no value is missing.
    bool take_ranges()
    {
        bool missing = false;
        for_each([&](std::int64_t, std::int32_t f, T &value) {
            missing = missing || std::isnan(value);
            low_[at(f)] = std::fmin(low_[at(f)], static_cast<double>(value));
            high_[at(f)] = std::fmax(high_[at(f)], static_cast<double>(value));
        });
        return missing;
    }

    void take_means()
    {
        const double heaviest =
            points_.weights == nullptr ? 1.0 : *std::max_element(points_.weights, points_.weights + points_.n);
        std::vector<PgkmFeatureScale> scales;
        for (std::int32_t f = 0; f < points_.d; ++f)
            scales.push_back(sum_scale(low_[at(f)], high_[at(f)], heaviest));
        PgkmProblem problem = {};
        problem.feature_scales = scales.data();
        problem.weight_exponent = points_.weights == nullptr ? 0 : scale_exponent(heaviest);
        std::vector<Int128> totals(at(points_.d), 0), masses(at(points_.d), 0);
        for_each([&](std::int64_t row, std::int32_t f, T &value) {
            if (std::isnan(value))
                return;
            totals[at(f)] += row_feature<T>(points_, problem, row, f);
            masses[at(f)] += row_mass(points_, problem, row);
        });
        for (std::int32_t f = 0; f < points_.d; ++f) { // no mass beside the heaviest row: any value will do
            const double mean = masses[at(f)] == 0 ? low_[at(f)]
                                                   : mean_of(totals[at(f)], masses[at(f)], scales[at(f)].origin,
                                                             scales[at(f)].exponent, problem.weight_exponent);
            means_[f] = static_cast<T>(mean);
        }
    }

    T *const values_;
    const PgkmPoints &points_;
    const PgkmInterrupted interrupted_;
    std::vector<double> low_, high_; // d each
    double *const means_;            // d
};

} // namespace
} // namespace pgkm

PgkmStatus pgkm_fill_missing(void *values, PgkmElement element, int64_t n, int32_t d, const double *weights,
                             double *means, int32_t *feature, PgkmInterrupted interrupted, PgkmError *error)
{
    const PgkmPoints points = {values, element, n, d, weights};
    return pgkm::guarded(error, [&] {
        *feature = element == PGKM_FLOAT32
                       ? pgkm::Filler<float>(static_cast<float *>(values), points, means, interrupted).run()
                       : pgkm::Filler<double>(static_cast<double *>(values), points, means, interrupted).run();
    });
}
