// The CPU backend's filter, with projections of the rows, with bits, and with rows as 16-bit integers, beside the
// contract: labels are the nearest by exact distances, and bounds hold. Where rows lie near few dimensions of many,
// projections pay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "cpu/assign/hamerly.hpp"
#include "cpu/assign/tiled.hpp"
#include "cpu/kernels/int16_kernels.hpp"
#include "numeric/contract.hpp"
#include "support/sanitized.hpp"

namespace {

using namespace pgkm;
using namespace pgkm::cpu;

std::vector<double> near_subspace(std::int64_t n, std::int32_t d, int dimensions, double noise)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(n * 1000 + d));
    std::normal_distribution<double> normal;
    std::vector<double> axes(static_cast<std::size_t>(dimensions * d)), rows(static_cast<std::size_t>(n * d));
    std::generate(axes.begin(), axes.end(), [&] { return normal(random); });
    for (std::int64_t i = 0; i < n; ++i) {
        double *row = rows.data() + i * d;
        for (int a = 0; a < dimensions; ++a) {
            const double weight = normal(random);
            for (std::int32_t f = 0; f < d; ++f)
                row[f] += weight * axes[static_cast<std::size_t>(a * d + f)];
        }
        for (std::int32_t f = 0; f < d; ++f)
            row[f] += noise * normal(random);
    }
    return rows;
}

// Rows of features with two values each, of any size and of any share; every 11th feature takes one but in a late row.
std::vector<double> two_valued(std::int64_t n, std::int32_t d, double share, double scale)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(n * 1000 + d));
    std::uniform_real_distribution<double> uniform;
    std::vector<double> rows, low, high;
    for (std::int32_t f = 0; f < d; ++f) {
        low.push_back(scale * (uniform(random) - 0.5));
        high.push_back(f % 11 == 5 ? low.back() : scale * (uniform(random) - 0.5));
    }
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int32_t f = 0; f < d; ++f)
            rows.push_back(uniform(random) < share ? high[static_cast<std::size_t>(f)]
                                                   : low[static_cast<std::size_t>(f)]);
    for (std::int32_t f = 5; f < d; f += 11)
        rows[static_cast<std::size_t>((n - 2) * d + f)] = scale;
    return rows;
}

// Under the sanitizers the filter works on all rows, of which one in so many is looked at: the plain run has looked at
// all, and that takes forty times as long as the filter.
constexpr int checked_step = test::sanitized ? 37 : 1;

template <typename T>
class Filtered {
  public:
    Filtered(const std::vector<double> &rows, std::int32_t d, std::int32_t k, const char *instruction_set = nullptr,
             std::uint64_t limit = 0)
        : values_(rows.begin(), rows.end()), n_(static_cast<std::int64_t>(rows.size()) / d), d_(d), k_(k),
          context_(open(instruction_set, limit), 2),
          data_{context_, {values_.data(), sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, n_, d, nullptr}},
          problem_(problem()), rows_(data_, context_.pool, problem_), tiled_(rows_, Purpose::iterations)
    {
        for (std::int32_t j = 0; j < k; ++j) // every (n / k)th row, so also first ones that come again
            std::copy_n(values_.begin() + j * (n_ / k) * d, d, std::back_inserter(centroids));
    }

    // Two assignments: to the centroids as they are, and to the means of what they got.
    bool check()
    {
        assign();
        std::vector<double> sums(centroids.size());
        std::vector<double> sizes(static_cast<std::size_t>(k_));
        for (std::int64_t i = 0; i < n_; ++i) {
            ++sizes[static_cast<std::size_t>(labels_[i])];
            for (std::int32_t f = 0; f < d_; ++f)
                sums[static_cast<std::size_t>(labels_[i] * d_ + f)] += static_cast<double>(values_[i * d_ + f]);
        }
        for (std::size_t at = 0; at < sums.size(); ++at)
            if (sizes[at / d_] > 0)
                centroids[at] = static_cast<T>(sums[at] / sizes[at / d_]);
        assign();
        return is_projected();
    }

    std::string filter() const { return tiled_.filter().name(); }
    bool is_projected() const { return filter() == "projection"; }
    bool has_bits() const { return filter() == "bits"; }

    // The strategy that a fit of these rows takes.
    Assignment chosen()
    {
        std::unique_ptr<Assigner<T>> made;
        assign_with<T>(made, rows_, Purpose::iterations, [](Assigner<T> &) {});
        return made->strategy();
    }
    bool is_fused() const { return has_fused(context_.instruction_set); }

    std::vector<T> centroids;

  private:
    static PgkmOpen open(const char *instruction_set, std::uint64_t limit)
    {
        PgkmOpen options = {};
        options.memory_limit = limit;
        options.tuning.instruction_set = instruction_set;
        return options;
    }

    PgkmProblem problem() const
    {
        PgkmProblem problem = {};
        problem.n_rows = n_;
        problem.k = k_;
        return problem;
    }

    void assign()
    {
        tiled_.begin(centroids.data());
        labels_.assign(static_cast<std::size_t>(n_), -1);
        for (std::int64_t first = 0; first < n_; first += tiled_width) {
            const int count = static_cast<int>(std::min<std::int64_t>(tiled_width, n_ - first));
            std::int64_t rows[tiled_width];
            float upper[tiled_width], lower[tiled_width];
            std::iota(rows, rows + count, first);
            tiled_.assign_block(0, rows, count, labels_.data() + first, {upper, lower});
            for (int i = 0; i < count; i += checked_step)
                check_row(first + i, upper[i], lower[i]);
        }
    }

    void check_row(std::int64_t i, float upper, float lower) const
    {
        double best = HUGE_VAL, other = HUGE_VAL;
        std::int32_t nearest = -1;
        for (std::int32_t j = 0; j < k_; ++j) {
            const double square = exact_distance(values_.data() + i * d_, centroids.data() + j * d_, d_);
            if (square < best || nearest < 0) {
                other = best;
                best = square;
                nearest = j;
            } else {
                other = std::min(other, square);
            }
        }
        ASSERT_EQ(labels_[i], nearest) << "row " << i;
        EXPECT_GE(static_cast<double>(upper), std::sqrt(best)) << "row " << i;
        EXPECT_LE(static_cast<double>(lower), std::sqrt(other)) << "row " << i;
    }

    std::vector<T> values_;
    std::int64_t n_;
    std::int32_t d_, k_;
    Context context_;
    Data data_;
    PgkmProblem problem_;
    Rows<T> rows_;
    Tiled<T> tiled_;
    std::vector<std::int32_t> labels_;
};

template <typename T>
class TiledFilter : public testing::Test {
};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(TiledFilter, Elements);

TYPED_TEST(TiledFilter, ProjectsRowsNearFewDimensions)
{
    for (const std::int32_t d : {127, 200, 513})
        EXPECT_TRUE(Filtered<TypeParam>(near_subspace(1501, d, 6, 0.1), d, 90).check()) << d;
    EXPECT_TRUE(Filtered<TypeParam>(near_subspace(1501, 200, 6, 0.1), 200, 90, "sse4").check());
    EXPECT_TRUE(Filtered<TypeParam>(near_subspace(1501, 200, 6, 0.1), 200, 90, "scalar").check());
}

TYPED_TEST(TiledFilter, DoesWithoutProjections)
{
    EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, 127, 127, 1.0), 127, 90).check()); // they would not pay
    EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, 12, 3, 0.1), 12, 90).check());     // few features
    EXPECT_FALSE(Filtered<TypeParam>(near_subspace(5, 200, 3, 0.1), 200, 3).check());       // few rows
    EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, 200, 6, 0.1), 200, 90, nullptr, 1'000'000).check()); // no room
}

TYPED_TEST(TiledFilter, TakesIntegersOfAnyShape)
{
    for (const std::int32_t d : {1, 2, 3, 7, 8, 9, 17, 40, 63})
        EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, d, d, 1.0), d, 90).check()) << d;
    for (const std::int32_t k : {1, 2, 5, 513, 600, 750}) // also more than are scored at a time
        EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, 19, 19, 1.0), 19, k).check()) << k;
    for (const char *set : {"sse4", "scalar"})
        EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, 19, 19, 1.0), 19, 90, set).check()) << set;
    // No room to keep the rows.
    EXPECT_FALSE(Filtered<TypeParam>(near_subspace(1501, 19, 19, 1.0), 19, 90, nullptr, 400'000).check());
}

TYPED_TEST(TiledFilter, TakesDistancesToFewCentroids)
{
    for (const char *set : {"", "avx2"})
        for (const std::int32_t d : {96, 111, 112, 113, 119, 120, 121, 513})
            for (const std::int32_t k : {2, 3, sizeof(TypeParam) == 4 ? 5 : 2}) {
                SCOPED_TRACE(testing::Message() << set << d << ' ' << k);
                Filtered<TypeParam> few(near_subspace(301, d, d, 1.0), d, k, *set == 0 ? nullptr : set);
                few.check();
                EXPECT_EQ(few.filter(), few.is_fused() ? "distance" : "int16");
                std::copy_n(few.centroids.begin(), d, few.centroids.end() - d); // the first again
                few.check();
            }
    // Of more, packed rows take less time; and so do bits.
    for (const std::int32_t k : {16, 17}) {
        Filtered<TypeParam> more(near_subspace(301, 513, 513, 1.0), 513, k);
        more.check();
        EXPECT_EQ(more.filter(), "int16");
    }
    Filtered<TypeParam> marks(two_valued(501, 130, 0.2, 3.0), 130, 8);
    marks.check();
    EXPECT_EQ(marks.filter(), "bits");
}

// Squares that leave float32, or that end below it; and rows that are as far from one centroid as from another.
TYPED_TEST(TiledFilter, TakesDistancesOfAnySize)
{
    for (const double scale : {0x1p-148, 0x1p-140, 0x1p-120, 0x1p-70, 0x1p40, 0x1p59, 0x1p66, 0x1p100, 0x1p120}) {
        SCOPED_TRACE(scale);
        std::vector<double> rows = near_subspace(301, 120, 4, 0.1);
        for (double &value : rows)
            value *= scale;
        Filtered<TypeParam>(rows, 120, 4).check();
        for (double &value : rows)
            value = value > 0.0 ? scale : value < -scale ? -scale : 0.0;
        Filtered<TypeParam>(rows, 120, 4).check();
        std::fill_n(rows.begin(), 120, scale < 0x1p66 ? 0x1p50 * scale : -scale);
        Filtered<TypeParam>(rows, 120, 3).check();
    }
}

// One feature is a thousand times as large as the others, and all lie far from 0.
TYPED_TEST(TiledFilter, TakesFeaturesOfDifferentSize)
{
    std::vector<double> rows = near_subspace(1501, 10, 10, 1.0);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = rows[i] * (i % 10 == 3 ? 1000.0 : 1.0) + 500.0;
    Filtered<TypeParam>(rows, 10, 90).check();
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = i % 10 == 3 ? rows[i] : 0.0;
    Filtered<TypeParam>(rows, 10, 90).check();
}

TYPED_TEST(TiledFilter, TakesTheFirstOfEqualCentroids)
{
    Filtered<TypeParam> integers(near_subspace(1501, 15, 15, 0.1), 15, 90);
    std::copy_n(integers.centroids.begin(), 40 * 15, integers.centroids.begin() + 50 * 15);
    EXPECT_FALSE(integers.check());
    std::fill(integers.centroids.begin(), integers.centroids.end(), TypeParam(0.25));
    integers.check();
    Filtered<TypeParam> filter(near_subspace(1501, 150, 6, 0.1), 150, 90);
    std::copy_n(filter.centroids.begin(), 40 * 150, filter.centroids.begin() + 50 * 150);
    EXPECT_TRUE(filter.check());
    std::fill(filter.centroids.begin(), filter.centroids.end(), TypeParam(0.25));
    filter.check();
}

// Squares that are sums of ones: many rows are as far from one centroid as from another.
TYPED_TEST(TiledFilter, BreaksTiesOfZerosAndOnes)
{
    for (const std::int32_t d : {12, 30, 128}) {
        const auto width = static_cast<std::size_t>(d);
        std::vector<double> rows = near_subspace(1501, d, 5, 0.05);
        for (double &value : rows)
            value = value > 0.0 ? 1.0 : 0.0;
        for (std::size_t i = 0; i < rows.size() / 2; ++i) // and each second row comes twice
            rows[i + rows.size() / 2] = rows[i];
        Filtered<TypeParam>(rows, d, 90).check();
        std::vector<double> repeated(1501 * width);
        for (std::size_t i = 0; i < repeated.size(); ++i)
            repeated[i] = rows[i % (7 * width)];
        Filtered<TypeParam>(repeated, d, 90).check();
    }
}

TYPED_TEST(TiledFilter, TakesBitsOfTwoValues)
{
    for (const double share : {0.1, 0.8})
        for (const std::int32_t d : {1, 7, 63, 64, 65, 130}) {
            Filtered<TypeParam> filter(two_valued(501, d, share, 3.0), d, 40);
            filter.check();
            EXPECT_TRUE(filter.has_bits()) << d;
        }
    for (const std::int32_t k : {1, 2, 33, 256, 257, 750})
        Filtered<TypeParam>(two_valued(801, 70, 0.2, 3.0), 70, k).check();
    for (const char *set : {"avx2", "sse4", "scalar"})
        Filtered<TypeParam>(two_valued(501, 70, 0.2, 3.0), 70, 90, set).check();
    for (const double scale : {0x1p-148, 0x1p-120, 0x1p-40, 0x1p59, 0x1p66, 0x1p120})
        Filtered<TypeParam>(two_valued(501, 70, 0.2, scale), 70, 40).check();
    // Centroids far from all rows, or all in one place: each beside the others but for a last digit.
    Filtered<TypeParam> far(two_valued(801, 70, 0.2, 3.0), 70, 90);
    std::fill_n(far.centroids.begin() + 3 * 70, 70, TypeParam(1e4));
    far.check();
    for (std::size_t i = 70; i < far.centroids.size(); ++i)
        far.centroids[i] =
            far.centroids[i % 70] * (TypeParam(1) + TypeParam(i % 3) * std::numeric_limits<TypeParam>::epsilon());
    far.check();
}

// The same beside numbers, every 10th feature; one row of 400 lies far out or has a third value somewhere.
std::vector<double> mixed(std::int64_t n, std::int32_t d, double scale)
{
    std::vector<double> rows = two_valued(n, d, 0.2, scale);
    std::mt19937_64 random(static_cast<std::uint64_t>(d));
    std::normal_distribution<double> normal(0.3 * scale, scale);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int32_t f = 3; f < d; f += 10)
            rows[static_cast<std::size_t>(i * d + f)] = normal(random);
    for (std::int64_t i = 399; i < n; i += 400)
        rows[static_cast<std::size_t>(i * d + (i / 400 * 7 + 3) % d)] = 40.0 * scale;
    return rows;
}

TYPED_TEST(TiledFilter, TakesBitsBesideNumbers)
{
    for (const std::int32_t d : {24, 64, 65, 130}) {
        Filtered<TypeParam> filter(mixed(1201, d, 3.0), d, 40);
        filter.check();
        EXPECT_TRUE(filter.has_bits()) << d;
    }
    for (const std::int32_t k : {1, 2, 33, 256, 257, 750})
        Filtered<TypeParam>(mixed(801, 70, 3.0), 70, k).check();
    for (const char *set : {"avx2", "sse4", "scalar"})
        Filtered<TypeParam>(mixed(801, 70, 3.0), 70, 90, set).check();
    for (const double scale : {0x1p-148, 0x1p-120, 0x1p-40, 0x1p59, 0x1p66, 0x1p114})
        Filtered<TypeParam>(mixed(801, 70, scale), 70, 40).check();
    Filtered<TypeParam> far(mixed(801, 70, 3.0), 70, 90);
    std::fill_n(far.centroids.begin() + 3 * 70, 70, TypeParam(1e4));
    far.check();
}

// Few centroids of so many features go to distances, unless the rows have an encoding that spares most of them.
TYPED_TEST(TiledFilter, IsChosenForBits)
{
    constexpr bool is_single = sizeof(TypeParam) == 4;
    constexpr std::int32_t k = is_single ? 12 : 6;
    EXPECT_EQ(Filtered<TypeParam>(mixed(801, 54, 3.0), 54, k).chosen(), Assignment::tiled);
    EXPECT_EQ(Filtered<TypeParam>(two_valued(801, 54, 0.2, 3.0), 54, k).chosen(), Assignment::tiled);
    Filtered<TypeParam> numbers(near_subspace(801, 54, 54, 0.1), 54, k);
    if (numbers.is_fused()) {
        EXPECT_EQ(numbers.chosen(), is_single ? Assignment::hamerly : Assignment::direct);
    }
}

TYPED_TEST(TiledFilter, TakesNoBitsOfThreeValues)
{
    // Of one feature in too many rows, none of the sample; of too many features; and a number of which few values are
    // far out.
    std::vector<double> late = two_valued(801, 70, 0.2, 3.0), all = late, far = late;
    for (std::size_t i = 0; i < 801; ++i) {
        if (i >= 795 && i != 797)
            late[i * 70 + 68] = 7.0;
        for (std::size_t f = 0; f < 70; f += 7)
            all[i * 70 + f] = static_cast<double>(i % 5);
        far[i * 70 + 9] = i % 400 == 0 ? 50.0 : static_cast<double>(i % 5);
    }
    for (const std::vector<double> &rows : {late, all, far}) {
        Filtered<TypeParam> filter(rows, 70, 90);
        filter.check();
        EXPECT_FALSE(filter.has_bits());
    }
    Filtered<TypeParam> no_room(two_valued(801, 70, 0.2, 3.0), 70, 90, nullptr, 500'000);
    no_room.check();
    EXPECT_FALSE(no_room.has_bits());
}

TYPED_TEST(TiledFilter, HoldsAtEveryScale)
{
    for (const double scale :
         {0x1p-148, 0x1p-140, 0x1p-120, 0x1p-70, 0x1p-40, 0x1p40, 0x1p59, 0x1p66, 0x1p100, 0x1p120}) {
        SCOPED_TRACE(scale);
        for (const std::int32_t d : {21, 129}) {
            std::vector<double> rows = near_subspace(801, d, 4, 0.1);
            for (double &value : rows)
                value *= scale;
            Filtered<TypeParam>(rows, d, 70).check();
        }
    }
}

// One row, which is a centroid too, lies so far away that no float32 bound holds, or only a poor one.
TYPED_TEST(TiledFilter, HoldsBesideAFarRow)
{
    for (const double far : {1e6, 1e15, 1e25, 1e37}) {
        SCOPED_TRACE(far);
        for (const std::int32_t d : {21, 129}) {
            std::vector<double> rows = near_subspace(801, d, 4, 0.1);
            std::fill_n(rows.begin(), d, far);
            Filtered<TypeParam>(rows, d, 70).check();
        }
    }
}

// A far centroid has moved by more than any lower bound, but the others' rows lie within half of the distance to it.
TEST(Hamerly, PassesOverRowsNearOneOfFewCentroids)
{
    constexpr std::int32_t d = 784, k = 2;
    const std::vector<double> rows = near_subspace(64, d, 4, 0.1);
    std::int64_t looks = 0;
    PgkmOpen options = {};
    options.host = {[](void *arg) { return static_cast<int>(++*static_cast<std::int64_t *>(arg), 0); }, nullptr,
                    &looks};
    Context context(options, 1);
    Hamerly<double> hamerly(Rows<double>(context, context.pool, rows.data(), 64, d, k), Purpose::iterations);
    std::vector<double> centroids(std::size_t{k} * d);
    std::vector<std::int32_t> labels(64, -1);
    const auto assign = [&](double where) {
        std::fill(centroids.begin() + d, centroids.end(), where);
        hamerly.begin(centroids.data());
        looks = 0;
        hamerly.assign(0, 0, 64, labels.data(), nullptr);
        EXPECT_EQ(labels, std::vector<std::int32_t>(64, 0));
    };
    assign(100.0);
    EXPECT_GT(looks, 0); // once for each block of rows that is compared
    assign(1000.0);
    EXPECT_EQ(looks, 0);
}

// Sums of squares in one lane lose much of these values, and most of them are rounded up.
TEST(Int16, LengthHoldsForMostFeatures)
{
    constexpr int d = 1 << 16;
    std::vector<float> row;
    for (int f = 0; f < d; ++f)
        row.push_back(static_cast<float>((f % 8 < 6 ? 179.56931473641848 : 180.56931473641848) * 0.012806822919529937));
    const std::vector<float> shift(d, 0.0F);
    std::vector<std::int32_t> words(static_cast<std::size_t>(int16_words(d)) * tiled_width);
    std::vector<float> block(static_cast<std::size_t>(d) * tiled_width);
    const float *rows[] = {row.data()};
    for (const char *const *set = strategy_names("instruction_set"); *set != nullptr; ++set) {
        int16_kernels(parse_instruction_set(*set)).encode(rows, 1, d, shift.data(), 1.0, block.data(), words.data());
        double square = 0.0;
        for (int p = 0; p < d / 2; ++p) {
            std::int16_t pair[2];
            std::memcpy(pair, words.data() + std::ptrdiff_t{int16_head + p} * tiled_width, sizeof pair);
            square += pair[0] * pair[0] + pair[1] * pair[1];
        }
        EXPECT_LE(std::sqrt(square), most_int16_length) << *set;
        EXPECT_GT(std::sqrt(square), 0.99 * most_int16_length) << *set;
    }
}

} // namespace
