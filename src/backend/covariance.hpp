// covariance.hpp - the four types of covariances described once: how many a mixture has, how large they are, and what
// an E step sums for them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Values of a lower triangle d x d by rows: element (a, b), b <= a, at a (a + 1) / 2 + b.
inline std::int64_t triangle_size(std::int64_t d)
{
    return d * (d + 1) / 2;
}

// The product of sizes that are not negative; the largest number where that does not hold it.
inline std::int64_t size_of_product(std::int64_t a, std::int64_t b)
{
    std::int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

// The shape of covariances, and of their factors (PgkmMixture).
struct CovarianceShape {
    explicit constexpr CovarianceShape(PgkmCovariance type)
        : is_shared(type == PGKM_COVARIANCE_TIED), dimensions(type == PGKM_COVARIANCE_FULL || is_shared ? 2
                                                              : type == PGKM_COVARIANCE_DIAG            ? 1
                                                                                                        : 0)
    {
    }
    constexpr bool is_matrix() const { return dimensions == 2; }
    constexpr bool has_own_matrices() const { return is_matrix() && !is_shared; }
    // Of k components.
    constexpr std::int64_t count(std::int64_t k) const { return is_shared ? 1 : k; }
    constexpr std::int64_t matrices(std::int64_t k) const { return is_matrix() ? count(k) : 0; }
    // Values of one.
    std::int64_t size(std::int64_t d) const { return is_matrix() ? size_of_product(d, d) : dimensions == 1 ? d : 1; }
    // Of the array that holds all.
    std::vector<std::int64_t> extents(std::int64_t k, std::int64_t d) const
    {
        std::vector<std::int64_t> all(is_shared ? 0 : 1, k);
        all.resize(all.size() + static_cast<std::size_t>(dimensions), d);
        return all;
    }

    bool is_shared; // one for all components; else each has its own
    int dimensions; // 2: a matrix d x d; 1: its diagonal; 0: one variance
};

// Values of PgkmMixture.factors, and of covariances.
inline std::int64_t factors_size(PgkmCovariance type, std::int64_t k, std::int64_t d)
{
    const CovarianceShape shape(type);
    return size_of_product(shape.count(k), shape.size(d));
}

// Values of PgkmMixtureSums.second.
inline std::int64_t second_size(PgkmCovariance type, std::int64_t k, std::int64_t d)
{
    const CovarianceShape shape(type);
    return shape.is_shared ? 0 : size_of_product(k, shape.is_matrix() ? triangle_size(d) : d);
}

// Products that an E step and its sums take over n rows.
inline double em_step_products(PgkmCovariance type, double n, double k, double d)
{
    const CovarianceShape shape(type);
    return n * d * (shape.has_own_matrices() ? k * d : 2.0 * k + (shape.is_matrix() ? d : 0.0));
}

} // namespace pgkm
