// Greedy k-means++ ends as well as scikit-learn's: the mean inertia over 30 seeds on eight sets beside the fixed
// figures of bench/seeding_quality.py.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "draws.hpp"
#include "fit_run.hpp"
#include "published.hpp"

namespace {

double mean_inertia(const Values &rows, std::int32_t d, std::int64_t k, PgkmInit init)
{
    constexpr int seeds = 30;
    double sum = 0.0;
    for (int seed = 0; seed < seeds; ++seed) {
        PgkmRequest request = request_for(rows, d, k);
        request.kmeans.init = init;
        request.kmeans.n_init = 1;
        request.kmeans.seed = static_cast<std::uint64_t>(seed);
        const FitRun run(request);
        EXPECT_EQ(run.error.status, PGKM_OK) << run.error.text;
        sum += run.result.inertia;
    }
    return sum / seeds;
}

struct Set {
    const char *name;
    Values rows;
    std::int32_t d;
    std::int64_t k;
    double scikit_learn; // mean inertia
};

std::vector<Set> sets()
{
    const std::string folder = published::checkout() + "test/data/";
    const auto grid = [](Draws &draws) { return std::floor(12.0 * draws.uniform()); };
    return {
        {"iris", published::read(folder + "iris.csv", 4).values, 4, 10, 27.416561},
        {"s1", published::read(folder + "s1.csv", 2).values, 2, 15, 9.868649e12},
        {"clouds", Draws(1).clouds(2000, 8, 20, 3.0), 8, 20, 17550.724},
        {"overlap", Draws(2).clouds(2000, 16, 32, 1.0), 16, 32, 31175.664},
        {"lognormal", Draws(3).fill(12000, [](Draws &draws) { return std::exp(draws.normal()); }), 4, 25, 7110.6175},
        {"uniform", Draws(4).fill(6000, [](Draws &draws) { return draws.uniform(); }), 2, 50, 9.4313045},
        {"repeated", Draws(5).fill(4000, grid), 2, 30, 1529.9563},
        {"unequal", Draws(6).clouds(3000, 3, 3, 6.0, {0.9, 0.99}), 3, 12, 3280.5037}};
}

TEST(SeedQuality, IsThatOfScikitLearn)
{
    for (const Set &set : sets()) {
        const double ratio = mean_inertia(set.rows, set.d, set.k, PGKM_INIT_KMEANS_PLUS_PLUS) / set.scikit_learn;
        RecordProperty(set.name, std::to_string(ratio));
        EXPECT_LT(ratio, 1.005) << set.name;
    }
}

} // namespace
