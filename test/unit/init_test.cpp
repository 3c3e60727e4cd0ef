// How first centroids are chosen by default: by rows, features and clusters alone, of each group by its own, of a sweep
// by its last k. With few distinct rows even large fits are short.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/kmeans/options.hpp"
#include "fit_run.hpp"

namespace {

PgkmInit init(double n, double d, double k)
{
    PgkmOptions options;
    pgkm_options_default(&options);
    return pgkm::init_of(options, n, d, k);
}

TEST(Init, GoesBySize)
{
    EXPECT_EQ(init(1 << 20, 64, 128), PGKM_INIT_KMEANS_PLUS_PLUS);
    EXPECT_EQ(init(1 << 20, 64, 129), PGKM_INIT_KMEANS_PARALLEL);
    EXPECT_EQ(init((1 << 20) + 1, 64, 128), PGKM_INIT_KMEANS_PARALLEL);
    EXPECT_EQ(init(1 << 20, 65, 128), PGKM_INIT_KMEANS_PARALLEL);
    EXPECT_EQ(init(90000, 1, 2e9), init(90000, 1, 90000)); // more clusters than rows are none
}

class InitOfRepeats : public testing::Test {
  protected:
    InitOfRepeats() : values(100000)
    {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<double>(i % 300);
    }

    static constexpr std::int64_t greedy = 85899, parallel = 85900; // on both sides of the limit

    std::vector<double> values;
};

TEST_F(InitOfRepeats, IsSaidOfEachGroup)
{
    std::vector<PgkmGroup> groups;
    for (const std::int64_t k : {parallel, greedy})
        groups.push_back({values.data(), nullptr, static_cast<std::int64_t>(values.size()), k});
    PgkmRequest together = request_for(values, 1, 1);
    together.groups = groups.data();
    together.n_groups = 2;
    const FitRun all(together);
    ASSERT_EQ(all.error.status, PGKM_OK) << all.error.text;
    for (std::int64_t g = 0; g < 2; ++g) {
        PgkmRequest one = request_for(values, 1, groups[static_cast<std::size_t>(g)].k);
        const FitRun alone(one);
        PgkmResult result;
        ASSERT_EQ(all.get(g, result), PGKM_OK);
        EXPECT_EQ(result.init, g == 0 ? PGKM_INIT_KMEANS_PARALLEL : PGKM_INIT_KMEANS_PLUS_PLUS);
        EXPECT_EQ(result.init, alone.result.init);
        ASSERT_EQ(result.k, alone.result.k);
        EXPECT_TRUE(std::equal(result.centroids, result.centroids + result.k, alone.result.centroids)) << g;
        one.kmeans.init = result.init;
        const FitRun named(one);
        EXPECT_TRUE(std::equal(result.centroids, result.centroids + result.k, named.result.centroids)) << g;
    }
}

TEST_F(InitOfRepeats, IsOneForASweep)
{
    PgkmRequest request = request_for(values, 1, greedy);
    request.k_last = parallel;
    request.want_labels = request.want_distances = 0;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    for (std::int64_t i = 0; i < 2; ++i) {
        PgkmResult result;
        ASSERT_EQ(run.get(i, result), PGKM_OK);
        EXPECT_EQ(result.init, PGKM_INIT_KMEANS_PARALLEL);
    }
}

} // namespace
