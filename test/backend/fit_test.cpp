// Lloyd's iterations: centroids byte for byte, and how they ended, after any number of them.
#include <algorithm>

#include "compare.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

class Fit : public Conformance {
  protected:
    void expect_same(std::int32_t max_iter, std::int32_t threads = 3)
    {
        Session session(subject(), data().points(), {}, threads);
        expect_same(session, max_iter);
    }
    void expect_same(Session &session, std::int32_t max_iter)
    {
        const Problems &expected = Expected::of(data()).fitted(max_iter);
        Problems actual = Expected::of(data()).start();
        PGKM_REQUIRE_OK(session.fit(actual.list.data(), actual.size(), {data().metric, max_iter}), session, subject());
        for (std::size_t g = 0; g < actual.size(); ++g) {
            SCOPED_TRACE("group " + std::to_string(g) + ", max_iter " + std::to_string(max_iter));
            EXPECT_TRUE(same_centroids(expected, actual, g));
            EXPECT_EQ(expected.list[g].n_iter, actual.list[g].n_iter);
            EXPECT_EQ(expected.list[g].converged, actual.list[g].converged);
            EXPECT_EQ(expected.list[g].shift, actual.list[g].shift);
        }
    }
};

#ifndef PGKM_SANITIZED // SameRowsAgain does the same again
TEST_P(Fit, OneIteration)
{
    expect_same(1);
}
TEST_P(Fit, TwoIterations)
{
    expect_same(2);
}
TEST_P(Fit, ThreeIterations)
{
    expect_same(3);
}
#endif

// What a backend keeps of loaded rows must not show in the next fit of them.
TEST_P(Fit, SameRowsAgain)
{
    Session session(subject(), data().points());
    for (const std::int32_t max_iter : sanitized ? std::vector{1, 3} : std::vector{3, 1, 3})
        expect_same(session, max_iter);
}

class FitLong : public Fit {};

TEST_P(FitLong, ManyIterations)
{
    expect_same(50);
}

PGKM_CONFORMANCE(Fit, all_subjects(), case_list());
PGKM_CONFORMANCE(FitLong, all_subjects(), case_list(150'000));

// The number of threads must not show.
class Threads : public Fit {};

TEST_P(Threads, DoNotShow)
{
    for (const std::int32_t threads : {1, 2, 5})
        expect_same(3, threads);
}

INSTANTIATE_TEST_SUITE_P(All, Threads,
                         testing::Combine(testing::ValuesIn(plain_subjects()),
                                          testing::Values(&case_named("groups_with_gaps_float32"),
                                                          &case_named("groups_float64"),
                                                          &case_named("empty_weighted_float32"))),
                         parameter_name);

// Clusters without rows beside one whose rows lie all at the same distance: more than a device hands over at a time,
// and those that come first by their content last.
const Case &many_ties()
{
    constexpr std::int64_t n = 200'003;
    constexpr std::int32_t d = 8, k = 30;
    static const Case data = [] {
        std::vector<float> values;
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int32_t f = 0; f < d; ++f)
                values.push_back((255 - i * 256 / n) >> (d - 1 - f) & 1 ? 1.0f : -1.0f);
        const auto *bytes = reinterpret_cast<const std::byte *>(values.data());
        Case made = {"many_ties",
                     PGKM_FLOAT32,
                     n,
                     d,
                     {bytes, bytes + values.size() * sizeof(float)},
                     {},
                     {{0, n, k}},
                     PGKM_L2,
                     std::vector<double>(d * k, 100.0),
                     0.0,
                     false};
        std::fill_n(made.start.begin(), d, 0.0);
        return made;
    }();
    return data;
}

class ManyTies : public Fit {};

TEST_P(ManyTies, AreTakenByContent)
{
    expect_same(1);
}

INSTANTIATE_TEST_SUITE_P(All, ManyTies,
                         testing::Combine(testing::ValuesIn(plain_subjects()), testing::Values(&many_ties())),
                         parameter_name);

} // namespace
} // namespace conformance
