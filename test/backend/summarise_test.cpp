// Statistics of the features: equal to the reference, whatever cuts the rows into blocks.
#include "compare.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

class Summarise : public Conformance {};

TEST_P(Summarise, EqualsReference)
{
    const Summaries &expected = Expected::of(data()).summaries();
    Session session(subject(), data().points());
    const Problems problems(data(), expected);
    Summaries actual(data());
    PGKM_REQUIRE_OK(session.summarise(problems.list.data(), problems.size(), true, actual.views.data()), session,
                    subject());
    EXPECT_TRUE(same(expected.values, actual.values));
    for (std::size_t g = 0; g < problems.size(); ++g)
        EXPECT_EQ(expected.views[g].max_weight, actual.views[g].max_weight) << "group " << g;
}

TEST_P(Summarise, LeavesMomentsAloneUnlessWanted)
{
    const Summaries &expected = Expected::of(data()).summaries();
    Session session(subject(), data().points());
    const Problems problems(data(), expected);
    Summaries actual(data());
    PGKM_REQUIRE_OK(session.summarise(problems.list.data(), problems.size(), false, actual.views.data()), session,
                    subject());
    for (std::size_t g = 0; g < problems.size(); ++g)
        for (std::int32_t f = 0; f < data().d; ++f) {
            ASSERT_EQ(expected.views[g].min[f], actual.views[g].min[f]) << "group " << g << " feature " << f;
            ASSERT_EQ(expected.views[g].max[f], actual.views[g].max[f]) << "group " << g << " feature " << f;
            ASSERT_EQ(actual.views[g].mean[f], -7.0) << "mean was touched";
            ASSERT_EQ(actual.views[g].variance[f], -7.0) << "variance was touched";
        }
}

PGKM_CONFORMANCE(Summarise, seeding_subjects(), case_list());

} // namespace
} // namespace conformance
