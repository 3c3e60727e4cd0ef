// Eigenvalues and eigenvectors by Eigen and by LAPACK, beside the matrix. What is tested is what we make of the
// libraries and not these.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "engine/pca/symmetric_eigen.hpp"
#include "fit_run.hpp"
#include "numeric/error.hpp"

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

const Poll no_poll = [] {};

std::int64_t all_vectors(const std::vector<double> &values)
{
    return static_cast<std::int64_t>(values.size());
}

// By each library.
class SymmetricEigenBy : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        if (by_lapack() && lapack() == nullptr)
            GTEST_SKIP() << "there is no LAPACK on this system";
    }
    static bool by_lapack() { return GetParam() == std::string("Lapack"); }
    static SymmetricEigen solve(const Matrix &matrix, std::int32_t d, const WantedVectors &wanted = all_vectors)
    {
        return by_lapack() ? eigen_by_lapack(*lapack(), matrix, d, no_poll, wanted) : eigen_by_eigen(matrix, d, wanted);
    }
};

INSTANTIATE_TEST_SUITE_P(Libraries, SymmetricEigenBy, testing::Values("Eigen", "Lapack"),
                         [](const auto &info) { return std::string(info.param); });

TEST_P(SymmetricEigenBy, Decomposes)
{
    for (const std::int32_t d : {1, 2, 3, 17, 64, 65, 130, 260})
        for (const std::int32_t rank : {1, d / 2 + 1, d, 2 * d})
            expect_decomposition(covariance(d, rank, 3.0), d, solve(covariance(d, rank, 3.0), d));
}

TEST_P(SymmetricEigenBy, SpecialMatrices)
{
    for (const Matrix &matrix :
         {diagonal({0, 0, 0, 0}), diagonal({1, 1, 1, 1}), diagonal({3, -1, 2, 0}), diagonal({1e300, 1e-300, 1, 0}),
          Matrix{0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0}})
        expect_decomposition(matrix, 4, solve(matrix, 4));
    const Matrix zero(at(200 * 200));
    expect_decomposition(zero, 200, solve(zero, 200));
}

// Equal values: any of their vectors will do, but those that are wanted must be there.
TEST_P(SymmetricEigenBy, EqualValuesOfWhichSomeAreWanted)
{
    std::vector<double> values(40, 1.0);
    values[7] = 3.0;
    values[9] = 0.0;
    const SymmetricEigen found = solve(diagonal(values), 40, [](const std::vector<double> &) { return 5; });
    ASSERT_EQ(found.vectors.size(), at(5 * 40));
    EXPECT_EQ(found.values[0], 3.0);
    EXPECT_EQ(found.values[39], 0.0);
    expect_decomposition(diagonal(values), 40, found);
}

TEST_P(SymmetricEigenBy, OnlyWantedVectors)
{
    for (const std::int32_t rank : {20, 300}) {
        const std::int32_t d = 300;
        const Matrix matrix = covariance(d, rank, 2.0);
        const SymmetricEigen all = solve(matrix, d);
        for (const std::int64_t count : {0, 1, 7, 150, 300}) {
            std::vector<double> seen;
            const SymmetricEigen some = solve(matrix, d, [&](const std::vector<double> &values) {
                seen = values;
                return count;
            });
            EXPECT_EQ(some.values, all.values);
            EXPECT_EQ(seen, all.values);
            ASSERT_EQ(some.vectors.size(), at(count * d));
            expect_decomposition(matrix, d, some);
        }
    }
}

// Products of values as large as 2^500 are in range, their squares are not.
TEST_P(SymmetricEigenBy, LargeValues)
{
    for (const double scale : {0x1p990, 0x1p-1000}) {
        Matrix matrix = covariance(20, 30, 2.0);
        for (double &value : matrix)
            value *= scale;
        SymmetricEigen scaled = solve(matrix, 20);
        for (double &value : matrix)
            value /= scale;
        for (double &value : scaled.values)
            value /= scale;
        expect_decomposition(matrix, 20, scaled);
    }
}

TEST(SymmetricEigen, CanBeStopped)
{
    const auto stop = [] { throw Error(PGKM_CANCELLED, "cancelled"); };
    EXPECT_THROW(symmetric_eigen(covariance(400, 400, 2.0), 400, stop, all_vectors), Error);
    const Matrix matrix = covariance(400, 400, 2.0);
    expect_decomposition(matrix, 400, symmetric_eigen(matrix, 400, no_poll, all_vectors));
}

// A PCA of `d` features by so many threads.
std::vector<double> components(std::int32_t d, int threads)
{
    const Matrix matrix = covariance(d, d, 2.0);
    const std::vector<double> mean(at(d));
    std::vector<double> cross;
    for (std::int64_t a = 0; a < d; ++a)
        cross.insert(cross.end(), matrix.begin() + a * d, matrix.begin() + a * d + a + 1);
    PgkmRequest request = {};
    request.algorithm = PGKM_PCA;
    request.points.n = d;
    request.points.d = d;
    request.mean = mean.data();
    request.cross = cross.data();
    request.mass = d;
    request.settings.cpu_threads = threads;
    const FitRun run(request);
    EXPECT_EQ(run.error.status, PGKM_OK) << run.error.text;
    return {run.result.components, run.result.components + std::int64_t{run.result.k} * d};
}

TEST(SymmetricEigen, ThreadsDoNotChangeBits)
{
    const std::vector<double> one = components(300, 1);
    ASSERT_EQ(one.size(), at(300 * 300));
    for (const int threads : {0, 2, 4})
        EXPECT_EQ(one, components(300, threads)) << threads;
}

// LAPACK's integers have 32 bits.
TEST(SymmetricEigen, TooManyFeatures)
{
    PgkmRequest request = {};
    request.algorithm = PGKM_PCA;
    request.points.n = 2;
    request.points.d = most_eigen_features + 1;
    EXPECT_STREQ(FitRun(request).error.text, "PCA of 46339 features is not possible: at most 46338 are");
    const std::int64_t most = most_eigen_features;
    EXPECT_LE(1 + most * (most + 4), INT32_MAX);
}

// In a process that has not opened LAPACK yet: BLAS libraries like to start threads.
void exit_with_threads_started()
{
    const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
    const auto before = threads();
    components(300, 0);
    std::exit(threads() == before ? 0 : 1);
}

TEST(SymmetricEigenDeathTest, LeavesNoThreads)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_with_threads_started(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace pgkm
