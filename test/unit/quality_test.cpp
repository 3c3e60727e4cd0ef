// Quality on published data: as good as the best solutions known.
#include <vector>

#include <gtest/gtest.h>

#include "fit_run.hpp"
#include "published.hpp"

namespace {

using published::Table;

PgkmRequest request_of(const Table &rows, std::int64_t k)
{
    PgkmRequest request = request_for(rows.values, rows.columns, k);
    request.kmeans.tol = 0.0;
    return request;
}

// Rounding aside, Lloyd's iterations from the true centres end where they ended for others.
void expect_from_truth(const Table &rows, const Table &truth, double sse)
{
    PgkmRequest request = request_of(rows, truth.rows());
    request.kmeans.init_centroids = {
        truth.values.data(), 2, {static_cast<std::int32_t>(truth.rows()), truth.columns, 0}};
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.k, truth.rows());
    EXPECT_LE(run.result.inertia, sse * (1 + 1e-9));
}

// The best of n_init starts. It may end a little below the reference, which is a local minimum
// too (on S1 three parts in a million), but no sum of squares can be far below it.
void expect_near(const Table &rows, std::int64_t k, std::int32_t n_init, double sse, double excess)
{
    PgkmRequest request = request_of(rows, k);
    request.kmeans.n_init = n_init;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.k, k);
    EXPECT_LE(run.result.inertia, sse * (1 + excess));
    EXPECT_GE(run.result.inertia, sse * 0.999) << "better than anything known: the sum must be wrong";
}

TEST(Quality, Iris)
{
    const Table rows = published::read(published::checkout() + "test/data/iris.csv", 4);
    ASSERT_EQ(rows.rows(), 150);
    PgkmRequest request = request_of(rows, 3);
    request.kmeans.n_init = 10;
    EXPECT_NEAR(FitRun(request).result.inertia, 78.851441426, 1e-8);
}

TEST(Quality, S1OfTheCheckout)
{
    const Table rows = published::read(published::checkout() + "test/data/s1.csv", 2);
    const Table truth = published::read(published::checkout() + "test/data/s1_centroids.csv", 2);
    ASSERT_EQ(rows.rows(), 5000);
    ASSERT_EQ(truth.rows(), 15);
    expect_from_truth(rows, truth, 8917650006651.107);
    expect_near(rows, 15, 10, 8917650006651.107, 0.01);
}

struct Set {
    const char *name;
    std::int32_t n_init;
    double excess; // over the reference
};

void PrintTo(const Set &set, std::ostream *out)
{
    *out << set.name;
}

class Published : public testing::TestWithParam<Set> {
  protected:
    void SetUp() override
    {
        const std::string path = published::folder() + "/fraenti/" + GetParam().name;
        rows = published::read(path + ".txt.xz", 2);
        truth = published::read(path + "-gt.txt", 2);
        const auto references = published::reference_sse();
        const auto found = references.find(GetParam().name);
        if (rows.rows() == 0 || truth.rows() == 0 || found == references.end())
            GTEST_SKIP() << "needs xz and the set " << GetParam().name << " in " << published::folder() << "/fraenti";
        sse = found->second;
    }
    Table rows, truth;
    double sse = 0.0;
};

TEST_P(Published, FromTheTrueCentres)
{
    expect_from_truth(rows, truth, sse);
}
TEST_P(Published, FromKmeansPlusPlus)
{
    expect_near(rows, truth.rows(), GetParam().n_init, sse, GetParam().excess);
}

// Birch1 is a 10 x 10 lattice of clusters: Lloyd's iterations cannot move a centroid past full
// neighbours, and each start leaves some of the hundred misplaced (medians of 30 starts: 8 %
// above the reference for k-means++ and for k-means|| alike). 1 % is out of reach of restarts.
INSTANTIATE_TEST_SUITE_P(Sets, Published,
                         testing::Values(Set{"s1", 10, 0.01}, Set{"s2", 10, 0.01}, Set{"a1", 10, 0.01},
                                         Set{"unbalance", 10, 0.01}, Set{"birch1", 10, 0.06}),
                         [](const testing::TestParamInfo<Set> &info) { return std::string(info.param.name); });

} // namespace
