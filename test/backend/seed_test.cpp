// Initial centroids: the same rows as the reference for every way of choosing them, whatever their order.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "compare.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

class Seed : public Conformance {
  protected:
    void expect_same(PgkmInit init, std::uint32_t restart)
    {
        const Problems &expected = Expected::of(data()).seeded(init, restart);
        Session session(subject(), data().points());
        Problems actual(data(), Expected::of(data()).summaries());
        PGKM_REQUIRE_OK(session.seed(actual.list.data(), actual.size(), seed_params(init, restart)), session,
                        subject());
        for (std::size_t g = 0; g < actual.size(); ++g)
            EXPECT_TRUE(same_centroids(expected, actual, g)) << "group " << g;
    }
};

TEST_P(Seed, KmeansPlusPlus)
{
    expect_same(PGKM_INIT_KMEANS_PLUS_PLUS, 0);
}
TEST_P(Seed, KmeansParallel)
{
    expect_same(PGKM_INIT_KMEANS_PARALLEL, 0);
}
TEST_P(Seed, Random)
{
    expect_same(PGKM_INIT_RANDOM, 0);
}
TEST_P(Seed, First)
{
    expect_same(PGKM_INIT_FIRST, 0);
}

// Half of the centroids are first rows, which stay.
TEST_P(Seed, GoesOnFromCentroids)
{
    const Problems &begun = Expected::of(data()).seeded(PGKM_INIT_FIRST, 0);
    PgkmSeedParams params = seed_params(PGKM_INIT_KMEANS_PLUS_PLUS, 2);
    params.kept = std::min_element(begun.list.begin(), begun.list.end(), [](auto &a, auto &b) { return a.k < b.k; })->k;
    params.kept = (params.kept + 1) / 2;
    const std::size_t bytes = static_cast<std::size_t>(params.kept * data().d) * data().element_size();
    const auto seed = [&](const Subject &by, Problems &problems) {
        for (std::size_t g = 0; g < begun.size(); ++g)
            std::memcpy(problems.list[g].centroids, begun.list[g].centroids, bytes);
        Session session(by, data().points());
        PGKM_REQUIRE_OK(session.seed(problems.list.data(), problems.size(), params), session, by);
    };
    Problems expected(data(), Expected::of(data()).summaries()), actual = expected;
    seed(reference_subject(), expected);
    seed(subject(), actual);
    if (IsSkipped())
        return;
    for (std::size_t g = 0; g < actual.size(); ++g) {
        EXPECT_TRUE(same_centroids(expected, actual, g)) << "group " << g;
        EXPECT_EQ(std::memcmp(actual.list[g].centroids, begun.list[g].centroids, bytes), 0) << "group " << g;
    }
}

class Restart : public Seed {};

TEST_P(Restart, KmeansPlusPlus)
{
    expect_same(PGKM_INIT_KMEANS_PLUS_PLUS, 3);
}
TEST_P(Restart, KmeansParallel)
{
    expect_same(PGKM_INIT_KMEANS_PARALLEL, 3);
}
TEST_P(Restart, Random)
{
    expect_same(PGKM_INIT_RANDOM, 3);
}

template <typename T>
void turn_zero(std::byte *value)
{
    T number;
    std::memcpy(&number, value, sizeof number);
    if (number == T(0)) {
        number = -number;
        std::memcpy(value, &number, sizeof number);
    }
}

// A case with the rows of each group in another order, and -0 for 0.
Case shuffled(const Case &data, std::uint64_t seed)
{
    Case result = data;
    std::mt19937_64 random(seed);
    const std::size_t row_bytes = static_cast<std::size_t>(data.d) * data.element_size();
    for (const Group &group : data.groups) {
        std::vector<std::int64_t> order(static_cast<std::size_t>(group.n));
        std::iota(order.begin(), order.end(), group.first);
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t i = 0; i < order.size(); ++i) {
            const auto from = static_cast<std::size_t>(order[i]), to = static_cast<std::size_t>(group.first) + i;
            std::memcpy(result.values.data() + to * row_bytes, data.values.data() + from * row_bytes, row_bytes);
            if (!data.weights.empty())
                result.weights[to] = data.weights[from];
        }
    }
    for (std::size_t i = 0; i < result.values.size(); i += data.element_size()) {
        if (data.element == PGKM_FLOAT32)
            turn_zero<float>(result.values.data() + i);
        else
            turn_zero<double>(result.values.data() + i);
    }
    return result;
}

// First centroids depend on the multiset of rows alone: not on their order, on threads, or on memory.
class Shuffled : public Conformance {
  protected:
    void expect_same(PgkmInit init)
    {
        const Problems &expected = Expected::of(data()).seeded(init, 1);
        for (const std::int32_t threads : {1, 2, 5}) {
            const Case other = shuffled(data(), static_cast<std::uint64_t>(threads));
            Session session(subject(), other.points(), {}, threads);
            Problems actual(other, Expected::of(data()).summaries());
            PGKM_REQUIRE_OK(session.seed(actual.list.data(), actual.size(), seed_params(init, 1)), session, subject());
            for (std::size_t g = 0; g < actual.size(); ++g)
                EXPECT_TRUE(same_centroids(expected, actual, g)) << "group " << g << ", " << threads << " threads";
        }
    }
};

TEST_P(Shuffled, KmeansPlusPlus)
{
    expect_same(PGKM_INIT_KMEANS_PLUS_PLUS);
}
TEST_P(Shuffled, KmeansParallel)
{
    expect_same(PGKM_INIT_KMEANS_PARALLEL);
}
TEST_P(Shuffled, Random)
{
    expect_same(PGKM_INIT_RANDOM);
}

// Centroids are drawn one after another: of the cases with more than 1024 of them, the two of few
// features do, one weighted. (k1100_empty has but a start of its own, which is not looked at here.)
std::vector<const Case *> cases()
{
    std::vector<const Case *> list = case_list();
    std::erase_if(list, [](const Case *one) {
        return one->name.starts_with("k1030_d17") || one->name.starts_with("k1100_empty");
    });
    return list;
}

PGKM_CONFORMANCE(Shuffled, seeding_subjects(), case_list(60'000));
PGKM_CONFORMANCE(Restart, seeding_subjects(), case_list(60'000));
PGKM_CONFORMANCE(Seed, seeding_subjects(), cases());

} // namespace
} // namespace conformance
