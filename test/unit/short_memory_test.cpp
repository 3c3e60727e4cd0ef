// What saves time is left out where memory is short: the same centroids with less.
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_backend.hpp"
#include "draws.hpp"
#include "seeded_rows.hpp"

namespace pgkm {
namespace {

class FittedRows : public SeededRows {
  public:
    using SeededRows::SeededRows;

    std::vector<double> fit(std::vector<double> centroids)
    {
        PgkmProblem one = problem(centroids);
        const PgkmFitParams params = {PGKM_L2, 10};
        status = table_->fit(data_, &one, 1, &params, &error_);
        return centroids;
    }
};

TEST(ShortMemory, LeavesOutBoundsOfRows)
{
    constexpr std::int32_t d = 2, k = 64;
    constexpr std::size_t n = 50000;
    Draws draws(3);
    const std::vector<double> rows = draws.fill(n * d, [](Draws &next) { return next.uniform(); });
    const std::vector<double> first(rows.begin(), rows.begin() + k * d);
    const std::vector<double> expected = FittedRows(cpu_backend(), rows, d).fit(first);
    FittedRows with_labels_alone(cpu_backend(), rows, d, {},
                                 450000); // bounds would be 400,000 beside labels of 200,000
    EXPECT_EQ(with_labels_alone.fit(first), expected);
    EXPECT_EQ(with_labels_alone.status, PGKM_OK);
    FittedRows without_labels(cpu_backend(), rows, d, {}, 100000);
    without_labels.fit(first);
    EXPECT_EQ(without_labels.status, PGKM_LIMIT);
}

} // namespace
} // namespace pgkm
