// Eigenvalues and eigenvectors: the stepwise solver beside Eigen's, and both beside the matrix; the
// products and the secular equation that it is made of.
#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "engine/error.hpp"
#include "engine/secular.hpp"
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

Matrix tridiagonal(const std::vector<double> &values, const std::vector<double> &beside)
{
    const auto d = static_cast<std::int64_t>(values.size());
    Matrix matrix = diagonal(values);
    for (std::int64_t i = 1; i < d; ++i)
        matrix[at(i * d + i - 1)] = matrix[at((i - 1) * d + i)] = beside[at(i - 1)];
    return matrix;
}

// |A v - lambda v| and |V V' - 1| against the size of the matrix; values descend.
void expect_decomposition(const Matrix &matrix, std::int32_t d, const SymmetricEigen &found)
{
    const auto vectors = static_cast<std::int32_t>(found.vectors.size() / at(d));
    double size = 1e-300;
    for (const double value : matrix)
        size = std::max(size, std::fabs(value));
    const double tolerance = 1e-14 * d;
    ASSERT_EQ(found.values.size(), at(d));
    for (std::int32_t j = 1; j < d; ++j)
        ASSERT_GE(found.values[at(j - 1)], found.values[at(j)]);
    for (std::int32_t j = 0; j < vectors; ++j) {
        const double *const v = found.vectors.data() + std::int64_t{j} * d;
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

// Features of scales from 1 down to where their products leave the range of float64.
TEST(SymmetricEigen, GradedMatrices)
{
    for (const std::int32_t d : {40, 80, 130, 200})
        for (const double decades : {30.0, 100.0, 150.0, 300.0}) {
            Matrix matrix = covariance(d, 2 * d, 0.0);
            for (std::int32_t a = 0; a < d; ++a)
                for (std::int32_t b = 0; b < d; ++b)
                    matrix[at(std::int64_t{a} * d + b)] *= std::pow(10.0, -decades * (a + b) / (2.0 * d));
            expect_decomposition(matrix, d, symmetric_eigen_in_steps(matrix, d, 2, no_poll));
            expect_decomposition(matrix, d, symmetric_eigen(matrix, d, 2, no_poll));
        }
}

// Values that meet, and parts that are hardly coupled: most of what is put together deflates.
TEST(SymmetricEigen, HardTridiagonals)
{
    const std::int32_t d = 210;
    std::vector<double> ones(at(d), 1.0), twos(at(d), 2.0), wilkinson, glue, graded;
    for (std::int32_t i = 0; i < d; ++i) {
        wilkinson.push_back(std::abs(i % 21 - 10)); // W21+, ten times
        glue.push_back(i % 21 == 20 ? 1e-10 : 1.0);
        graded.push_back(std::pow(10.0, -i / 15.0));
    }
    for (const Matrix &matrix : {tridiagonal(twos, ones), tridiagonal(wilkinson, glue), tridiagonal(graded, graded),
                                 tridiagonal(std::vector<double>(at(d), 0.0), ones),
                                 tridiagonal(wilkinson, std::vector<double>(at(d), -1e-14))})
        expect_decomposition(matrix, d, symmetric_eigen_in_steps(matrix, d, 2, no_poll));
}

// Values of the second difference matrix are known.
TEST(SymmetricEigen, KnownValues)
{
    const std::int32_t d = 333;
    const SymmetricEigen found = symmetric_eigen_in_steps(
        tridiagonal(std::vector<double>(at(d), 2.0), std::vector<double>(at(d), -1.0)), d, 2, no_poll);
    for (std::int32_t j = 0; j < d; ++j)
        EXPECT_NEAR(found.values[at(j)], 2.0 + 2.0 * std::cos((j + 1) * std::acos(-1.0) / (d + 1)), 1e-14);
}

TEST(SymmetricEigen, OnlyWantedVectors)
{
    for (const std::int32_t rank : {20, 300}) {
        const std::int32_t d = 300;
        const Matrix matrix = covariance(d, rank, 2.0);
        const SymmetricEigen all = symmetric_eigen_in_steps(matrix, d, 2, no_poll);
        for (const std::int64_t count : {0, 1, 7, 150, 300}) {
            std::vector<double> seen;
            const SymmetricEigen some =
                symmetric_eigen_in_steps(matrix, d, 2, no_poll, [&](const std::vector<double> &values) {
                    seen = values;
                    return count;
                });
            EXPECT_EQ(some.values, all.values);
            EXPECT_EQ(seen.size(), at(d));
            ASSERT_EQ(some.vectors.size(), at(count * d));
            expect_decomposition(matrix, d, some);
        }
    }
}

TEST(MatrixProduct, AgreesWithTheDefinition)
{
    const MatrixWork work = {[](std::int64_t tasks, const std::function<void(std::int64_t)> &body) {
                                 for (std::int64_t task = tasks; task-- > 0;)
                                     body(task);
                             },
                             no_poll, cpu::matrix_kernels(cpu::best_instruction_set())};
    std::mt19937_64 random(7);
    std::uniform_int_distribution<int> whole(-9, 9); // products and sums are exact
    for (const auto &[m, k, n] :
         {std::tuple{1, 1, 1}, {5, 3, 7}, {193, 300, 200}, {24, 0, 8}, {0, 5, 5}, {400, 2, 385}}) {
        Matrix a(at(m * k)), b(at(k * n)), c(at(m * (n + 3)), 1.0), expected = c;
        for (double &value : a)
            value = whole(random);
        for (double &value : b)
            value = whole(random);
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j)
                for (int p = 0; p < k; ++p)
                    expected[at(i * (n + 3) + j)] -= 2.0 * a[at(p * m + i)] * b[at(p * n + j)];
        add_product(work, -2.0, {a.data(), m, k, 1, m}, {b.data(), k, n, n, 1}, c.data(), n + 3);
        EXPECT_EQ(c, expected) << m << " x " << k << " x " << n;
    }
}

// The roots lie between the poles and solve the equation; differences carry their own digits.
TEST(SecularRoot, SolvesTheEquation)
{
    const std::vector<double> d = {-3.0, 1.0, 1.0 + 1e-12, 2.0, 2.5, 1e6},
                              squares = {0.1, 1e-20, 0.3, 1e-3, 0.5, 0.0969};
    for (const double rho : {1e-8, 1.0, 1e8})
        for (std::int64_t j = 0; j < 6; ++j) {
            std::vector<double> differences(6);
            const double root = secular_root(j, 6, d.data(), squares.data(), rho, differences.data());
            EXPECT_GE(root, d[at(j)]);
            EXPECT_LE(root, j == 5 ? d[5] + rho : d[at(j + 1)]);
            double sum = 1.0 / rho, size = 1.0 / rho;
            for (std::size_t i = 0; i < 6; ++i) {
                EXPECT_EQ(differences[i] < 0.0, i <= at(j)) << "rho " << rho << ", root " << j << ", pole " << i;
                sum += squares[i] / differences[i];
                size += std::fabs(squares[i] / differences[i]);
            }
            EXPECT_NEAR(sum, 0.0, 1e-13 * size) << "rho " << rho << ", root " << j;
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
