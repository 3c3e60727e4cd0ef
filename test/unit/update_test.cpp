// From sums to centroids, and what becomes of empty clusters: examples by hand.
#include "backend/update.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace pgkm {
namespace {

// One feature, values at a scale of 1 (exponent 0 keeps the integers readable).
struct Line {
    std::vector<double> rows, centroids, weights;
    std::vector<std::int32_t> labels;
    std::vector<double> distances;
    PgkmFeatureScale scale = {0.0, 0};
    PgkmProblem problem = {};
    Sums sums;

    PgkmPoints points() const
    {
        return {rows.data(), PGKM_FLOAT64, static_cast<std::int64_t>(rows.size()), 1,
                weights.empty() ? nullptr : weights.data()};
    }

    void prepare()
    {
        problem.n_rows = static_cast<std::int64_t>(rows.size());
        problem.k = static_cast<std::int32_t>(centroids.size());
        problem.centroids = centroids.data();
        problem.feature_scales = &scale;
        sums.reset(problem.k, 1);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto cluster = static_cast<std::size_t>(labels[i]);
            distances.push_back((rows[i] - centroids[cluster]) * (rows[i] - centroids[cluster]));
            sums.masses[cluster] += row_mass(points(), problem, static_cast<std::int64_t>(i));
            sums.totals[cluster] += row_feature<double>(points(), problem, static_cast<std::int64_t>(i), 0);
        }
    }
    void relocate()
    {
        std::vector<FarRow> far;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (distances[i] > 0.0)
                far.push_back({distances[i], static_cast<std::int64_t>(i), labels[i]});
        relocate_empty_clusters<double>(points(), problem, far, sums);
    }
    double mass(std::size_t j) const { return static_cast<double>(sums.masses[j]) / unit(); }
    double total(std::size_t j) const { return static_cast<double>(sums.totals[j]) / unit(); }
    double unit() const { return weights.empty() ? 1.0 : std::ldexp(1.0, lower_limb_bits); }
};

TEST(Split, JoinsBack)
{
    for (const Int128 value : {Int128{0}, Int128{1}, Int128{-1}, Int128{1} << 100, -(Int128{1} << 100) - 3,
                               static_cast<Int128>(UInt128{1} << 127)})
        EXPECT_TRUE(join(split(value)) == value);
    EXPECT_EQ(split(-1).hi, -1);
    EXPECT_EQ(split(-1).lo, ~std::uint64_t{0});
}

TEST(Relocate, FarthestRowFillsTheEmptyCluster)
{
    Line line = {
        .rows = {0, 1, 9}, .centroids = {0, 100}, .weights = {}, .labels = {0, 0, 0}, .distances = {}, .sums = {}};
    line.prepare();
    ASSERT_TRUE(has_empty_cluster(line.sums));
    line.relocate();
    EXPECT_FALSE(has_empty_cluster(line.sums));
    EXPECT_EQ(line.mass(0), 2);
    EXPECT_EQ(line.total(0), 1);
    EXPECT_EQ(line.mass(1), 1);
    EXPECT_EQ(line.total(1), 9);
}

TEST(Relocate, LesserContentOnATie)
{
    for (const std::vector<double> &rows : {std::vector<double>{5, -5, 5, 0}, {0, 5, 5, -5}, {-5, 0, 5, 5}}) {
        Line line = {
            .rows = rows, .centroids = {0, 100}, .weights = {}, .labels = {0, 0, 0, 0}, .distances = {}, .sums = {}};
        line.prepare();
        line.relocate();
        EXPECT_EQ(line.total(1), -5);
        EXPECT_EQ(line.total(0), 10);
        EXPECT_EQ(line.mass(0), 3);
    }
}

TEST(Relocate, LesserWeightOfEqualRows)
{
    for (const std::vector<double> &weights : {std::vector<double>{3, 2, 4, 1}, {2, 3, 4, 1}, {4, 3, 2, 1}}) {
        Line line = {.rows = {5, 5, 5, 0},
                     .centroids = {0, 100},
                     .weights = weights,
                     .labels = {0, 0, 0, 0},
                     .distances = {},
                     .sums = {}};
        line.prepare();
        line.relocate();
        EXPECT_EQ(line.mass(1), 2);
        EXPECT_EQ(line.mass(0), 8);
        EXPECT_EQ(line.total(1), 10);
    }
}

TEST(Relocate, EmptyClustersAreServedInAscendingOrder)
{
    Line line = {.rows = {1, 7, 3, 5},
                 .centroids = {0, 100, 200, 300},
                 .weights = {},
                 .labels = {0, 0, 0, 0},
                 .distances = {},
                 .sums = {}};
    line.prepare();
    line.relocate();
    EXPECT_EQ(line.total(1), 7);
    EXPECT_EQ(line.total(2), 5);
    EXPECT_EQ(line.total(3), 3);
    EXPECT_EQ(line.total(0), 1);
}

TEST(Relocate, DonorsKeepARow)
{
    // Row 0 is alone in its cluster and far: it must stay; rows on their centroid never move.
    Line line = {.rows = {50, 10, 10},
                 .centroids = {0, 10, 100},
                 .weights = {},
                 .labels = {0, 1, 1},
                 .distances = {},
                 .sums = {}};
    line.prepare();
    line.relocate();
    EXPECT_EQ(line.mass(0), 1);
    EXPECT_EQ(line.mass(1), 2);
    EXPECT_EQ(line.mass(2), 0);
}

TEST(Relocate, LooksAtMoreRowsWhereTheFarthestAreUnfit)
{
    // Clusters 1 to 90 have one row each, farther away than any of cluster 0; cluster 91 is empty.
    Line line = {.rows = {1, -2}, .centroids = {0}, .weights = {}, .labels = {0, 0}, .distances = {}, .sums = {}};
    for (std::int32_t j = 1; j <= 90; ++j) {
        line.rows.push_back(1000.0 * j + 10);
        line.centroids.push_back(1000.0 * j);
        line.labels.push_back(j);
    }
    line.centroids.push_back(1e6);
    line.prepare();
    int calls = 0;
    const PgkmPoints points = line.points();
    const auto farthest = [&](std::size_t most) {
        ++calls;
        std::vector<FarRow> rows;
        for (std::size_t i = 0; i < line.rows.size(); ++i)
            rows.push_back({line.distances[i], static_cast<std::int64_t>(i), line.labels[i]});
        std::sort(rows.begin(), rows.end(), FarOrder<double>{points, 0});
        rows.resize(std::min(rows.size(), most));
        return rows;
    };
    relocate_by_farthest<double>(points, line.problem, line.sums.masses, farthest, move_within<double>(line.sums));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(line.mass(91), 1);
    EXPECT_EQ(line.total(91), -2);
    EXPECT_EQ(line.total(0), 1);
}

TEST(Relocate, WeightedRowTakesItsMassAlong)
{
    Line line = {.rows = {0, 4, 8},
                 .centroids = {0, 100},
                 .weights = {3, 2, 5},
                 .labels = {0, 0, 0},
                 .distances = {},
                 .sums = {}};
    line.prepare();
    line.relocate();
    EXPECT_EQ(line.mass(1), 5);
    EXPECT_EQ(line.total(1), 40);
    EXPECT_EQ(line.mass(0), 5);
    EXPECT_EQ(line.total(0), 8);
}

// A row of a weight far below the others' has mass; one that vanishes even beside 92 bits does not fill a cluster.
TEST(Relocate, LightRowsHaveMass)
{
    Line line = {.rows = {0, 4, 8, 16},
                 .centroids = {0, 100},
                 .weights = {1, 1, 0x1p-40, 0x1p-50},
                 .labels = {0, 0, 0, 0},
                 .distances = {},
                 .sums = {}};
    line.prepare();
    line.relocate();
    EXPECT_EQ(line.mass(1), 0x1p-40);
    EXPECT_EQ(line.total(1), 0x1p-37);
    EXPECT_EQ(line.mass(0), 2);
    EXPECT_EQ(line.total(0), 4 + 0x1p-46); // the value of the row without mass is in the sum
}

TEST(Update, MeansAndShift)
{
    Line line = {.rows = {1, 2, 10, 20},
                 .centroids = {0, 18, 7},
                 .weights = {},
                 .labels = {0, 0, 1, 1},
                 .distances = {},
                 .sums = {}};
    line.prepare();
    const double shift = update_centroids<double>(line.problem, 1, PGKM_L2, line.sums);
    EXPECT_EQ(line.centroids, (std::vector<double>{1.5, 15, 7})); // an empty cluster stays
    EXPECT_EQ(shift, 2.25 + 9.0);
}

TEST(Update, CosineNormalisesAndKeepsWhatHasNoDirection)
{
    std::vector<double> centroids = {1, 0, 0, 1};
    std::vector<PgkmFeatureScale> scales = {{0.0, 0}, {0.0, 0}};
    PgkmProblem problem = {};
    problem.k = 2;
    problem.centroids = centroids.data();
    problem.feature_scales = scales.data();
    Sums sums;
    sums.reset(2, 2);
    sums.totals = {6, 8, 0, 0};
    sums.masses = {5, 4};
    const double shift = update_centroids<double>(problem, 2, PGKM_COSINE, sums);
    EXPECT_NEAR(centroids[0], 0.6, 1e-15);
    EXPECT_NEAR(centroids[1], 0.8, 1e-15);
    EXPECT_EQ(centroids[2], 0.0);
    EXPECT_EQ(centroids[3], 1.0);
    EXPECT_NEAR(shift, 0.16 + 0.64, 1e-15);
}

} // namespace
} // namespace pgkm
