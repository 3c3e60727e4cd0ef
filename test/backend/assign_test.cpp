// One assignment: labels, distances and every integer sum equal those of the reference.
#include "compare.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

class Assign : public Conformance {
  protected:
    void expect_same(const Assignments &actual)
    {
        const Assignments &expected = Expected::of(data()).assigned();
        for (std::size_t g = 0; g < data().groups.size(); ++g) {
            EXPECT_TRUE(same(expected.labels[g], actual.labels[g])) << "labels, group " << g;
            EXPECT_TRUE(same(expected.distances[g], actual.distances[g])) << "distances, group " << g;
            EXPECT_TRUE(same(expected.totals[g], actual.totals[g])) << "totals, group " << g;
            EXPECT_TRUE(same(expected.masses[g], actual.masses[g])) << "masses, group " << g;
            EXPECT_TRUE(same(expected.within[g], actual.within[g])) << "within, group " << g;
            EXPECT_TRUE(same(expected.sizes[g], actual.sizes[g])) << "sizes, group " << g;
        }
    }
};

TEST_P(Assign, AllOutputsEqualReference)
{
    const Problems &start = Expected::of(data()).start();
    Session session(subject(), data().points());
    Assignments actual(start);
    std::vector<PgkmAssignment> views = actual.views();
    PGKM_REQUIRE_OK(session.assign(start.list.data(), start.size(), views.data()), session, subject());
    expect_same(actual);
}

// What is not wanted must not be needed.
class AssignPartly : public Assign {};

TEST_P(AssignPartly, EachOutputAlone)
{
    const Problems &start = Expected::of(data()).start();
    Session session(subject(), data().points());
    Assignments actual(start);
    const std::vector<PgkmAssignment> all = actual.views();
    for (int output = 0; output < 6; ++output) {
        std::vector<PgkmAssignment> one(all.size());
        for (std::size_t g = 0; g < all.size(); ++g) {
            one[g].labels = output == 0 ? all[g].labels : nullptr;
            one[g].distances = output == 1 ? all[g].distances : nullptr;
            one[g].totals = output == 2 ? all[g].totals : nullptr;
            one[g].masses = output == 3 ? all[g].masses : nullptr;
            one[g].within = output == 4 ? all[g].within : nullptr;
            one[g].sizes = output == 5 ? all[g].sizes : nullptr;
        }
        PGKM_REQUIRE_OK(session.assign(start.list.data(), start.size(), one.data()), session, subject());
    }
    expect_same(actual);
}

PGKM_CONFORMANCE(Assign, all_subjects(), case_list());
PGKM_CONFORMANCE(AssignPartly, all_subjects(), case_list(30'000));

} // namespace
} // namespace conformance
