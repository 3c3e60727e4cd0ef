// Eigenvalues and eigenvectors: the stepwise solver beside Eigen's, and both beside the matrix.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "engine/error.hpp"
#include "engine/symmetric_eigen.hpp"

namespace pgkm {
namespace {

using Matrix = std::vector<double>;

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

// A covariance of `rank` random directions with spread falling over some decades.
Matrix covariance(std::int32_t d, std::int32_t rank, double decades)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(d * 1000 + rank));
    std::normal_distribution<double> normal;
    Matrix matrix(at(std::int64_t{d} * d));
    for (std::int32_t r = 0; r < rank; ++r) {
        std::vector<double> x(at(d));
        for (double &value : x)
            value = normal(random) * std::pow(10.0, -decades * r / rank);
        for (std::int32_t a = 0; a < d; ++a)
            for (std::int32_t b = 0; b < d; ++b)
                matrix[at(std::int64_t{a} * d + b)] += x[at(a)] * x[at(b)];
    }
    return matrix;
}

Matrix diagonal(const std::vector<double> &values)
{
    const auto d = static_cast<std::int64_t>(values.size());
    Matrix matrix(at(d * d));
    for (std::int64_t i = 0; i < d; ++i)
        matrix[at(i * d + i)] = values[at(i)];
    return matrix;
}

// |A v - lambda v| and |V V' - 1| against the size of the matrix; values descend.
void expect_decomposition(const Matrix &matrix, std::int32_t d, const SymmetricEigen &found)
{
    double size = 1e-300;
    for (const double value : matrix)
        size = std::max(size, std::fabs(value));
    const double tolerance = 1e-14 * d;
    ASSERT_EQ(found.values.size(), at(d));
    for (std::int32_t j = 0; j < d; ++j) {
        const double *const v = found.vectors.data() + std::int64_t{j} * d;
        ASSERT_GE(found.values[at(j == 0 ? 0 : j - 1)], found.values[at(j)]);
        for (std::int32_t a = 0; a < d; ++a) {
            double product = 0.0;
            for (std::int32_t b = 0; b < d; ++b)
                product += matrix[at(std::int64_t{a} * d + b)] * v[b];
            ASSERT_NEAR(product, found.values[at(j)] * v[a], tolerance * size * d) << "vector " << j;
        }
        for (std::int32_t i = 0; i <= j; ++i) {
            double product = 0.0;
            for (std::int32_t f = 0; f < d; ++f)
                product += found.vectors[at(std::int64_t{i} * d + f)] * v[f];
            ASSERT_NEAR(product, i == j ? 1.0 : 0.0, tolerance) << "vectors " << i << " and " << j;
        }
    }
}

const std::function<void()> no_poll = [] {};

TEST(SymmetricEigen, StepsDecompose)
{
    for (const std::int32_t d : {1, 2, 3, 17, 64, 65, 130, 260})
        for (const std::int32_t rank : {1, d / 2 + 1, d, 2 * d})
            expect_decomposition(covariance(d, rank, 3.0), d,
                                 symmetric_eigen_in_steps(covariance(d, rank, 3.0), d, 2, no_poll));
}

TEST(SymmetricEigen, StepsAgreeWithEigen)
{
    const std::int32_t d = 140;
    const Matrix matrix = covariance(d, 2 * d, 6.0);
    const SymmetricEigen steps = symmetric_eigen_in_steps(matrix, d, 3, no_poll);
    const SymmetricEigen once = symmetric_eigen_at_once(matrix, d);
    for (std::int32_t j = 0; j < d; ++j)
        EXPECT_NEAR(steps.values[at(j)], once.values[at(j)], 1e-13 * once.values[0]);
}

TEST(SymmetricEigen, SpecialMatrices)
{
    for (const Matrix &matrix :
         {diagonal({0, 0, 0, 0}), diagonal({1, 1, 1, 1}), diagonal({3, -1, 2, 0}), diagonal({1e300, 1e-300, 1, 0}),
          Matrix{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}}) {
        Matrix symmetric = matrix;
        for (std::int32_t a = 0; a < 4; ++a)
            for (std::int32_t b = 0; b < a; ++b)
                symmetric[at(b * 4 + a)] = symmetric[at(a * 4 + b)];
        expect_decomposition(symmetric, 4, symmetric_eigen_in_steps(symmetric, 4, 1, no_poll));
        expect_decomposition(symmetric, 4, symmetric_eigen(symmetric, 4, 1, no_poll));
    }
}

// Products of values as large as 2^500 are in range, their squares are not.
TEST(SymmetricEigen, LargeValues)
{
    Matrix matrix = covariance(20, 30, 2.0);
    for (double &value : matrix)
        value *= 0x1p990;
    const SymmetricEigen found = symmetric_eigen_in_steps(matrix, 20, 1, no_poll);
    for (double &value : matrix)
        value *= 0x1p-990;
    SymmetricEigen scaled = found;
    for (double &value : scaled.values)
        value *= 0x1p-990;
    expect_decomposition(matrix, 20, scaled);
}

TEST(SymmetricEigen, ThreadsDoNotChangeBits)
{
    const std::int32_t d = 300;
    const Matrix matrix = covariance(d, d, 2.0);
    const SymmetricEigen one = symmetric_eigen_in_steps(matrix, d, 1, no_poll);
    const SymmetricEigen four = symmetric_eigen_in_steps(matrix, d, 4, no_poll);
    EXPECT_EQ(one.values, four.values);
    EXPECT_EQ(one.vectors, four.vectors);
}

TEST(SymmetricEigen, CanBeStopped)
{
    int polls = 0;
    const auto stop = [&] {
        if (++polls == 100)
            throw Error(PGKM_CANCELLED, "cancelled");
    };
    EXPECT_THROW(symmetric_eigen(covariance(300, 300, 2.0), 300, 1, stop), Error);
}

} // namespace
} // namespace pgkm
