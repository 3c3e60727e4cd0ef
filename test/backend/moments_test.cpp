// The sums of PCA: near the reference's, and the same bits for any number of threads.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "compare.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

struct Sums {
    Sums(const Case &data, std::size_t group, const double *mean) : shift(mean, mean + data.d), sums(shift.size())
    {
        cross.resize(shift.size() * (shift.size() + 1) / 2);
        view = {shift.data(), sums.data(), cross.data(), 0.0};
        problem.first_row = data.groups[group].first;
        problem.n_rows = data.groups[group].n;
    }
    PgkmStatus take(Session &session) { return session.moments(&problem, 1, &view); }

    std::vector<double> shift, sums, cross;
    PgkmMoments view;
    PgkmProblem problem = {};
};

// What the reference makes of a group, computed once for all subjects: it is slow.
const Sums &expected_sums(const Case &data, std::size_t group, const double *mean)
{
    static std::map<std::pair<std::string, std::size_t>, std::unique_ptr<const Sums>> all;
    std::unique_ptr<const Sums> &known = all[{data.name, group}];
    if (known == nullptr) {
        Session session(reference_subject(), data.points());
        auto made = std::make_unique<Sums>(data, group, mean);
        if (made->take(session) != PGKM_OK)
            throw std::runtime_error(std::string("the reference failed: ") + session.error.text);
        known = std::move(made);
    }
    return *known;
}

class Moments : public Conformance {};

TEST_P(Moments, NearReference)
{
    Session session(subject(), data().points()), one_thread(subject(), data().points(), {}, 1);
    const Summaries &summaries = Expected::of(data()).summaries();
    const auto d = static_cast<std::size_t>(data().d);
    for (std::size_t g = 0; g < data().groups.size(); ++g) {
        const Sums &expected = expected_sums(data(), g, summaries.views[g].mean);
        Sums actual(data(), g, summaries.views[g].mean), again = actual, alone = actual;
        for (Sums *sums : {&again, &alone})
            sums->view = {sums->shift.data(), sums->sums.data(), sums->cross.data(), 0.0};
        PGKM_REQUIRE_OK(actual.take(session), session, subject());
        PGKM_REQUIRE_OK(again.take(session), session, subject());
        PGKM_REQUIRE_OK(alone.take(one_thread), one_thread, subject());
        EXPECT_EQ(actual.sums, again.sums);
        EXPECT_EQ(actual.cross, again.cross);
        EXPECT_EQ(actual.sums, alone.sums);
        EXPECT_EQ(actual.cross, alone.cross);
        EXPECT_EQ(actual.view.mass, alone.view.mass);
        ASSERT_NEAR(actual.view.mass, expected.view.mass, 1e-13 * expected.view.mass);
        // A device may multiply float32 rows with the precision of float32.
        const bool rounded = subject().device >= 0 && data().element == PGKM_FLOAT32;
        const double tolerance = rounded ? 2e-6 : 1e-12, sum_tolerance = rounded ? 1e-7 : 1e-14;
        const auto square = [&](std::size_t f) { return expected.cross[f * (f + 1) / 2 + f]; };
        const double least = std::numeric_limits<double>::min() * static_cast<double>(data().groups[g].n);
        for (std::size_t a = 0, i = 0; a < d; ++a) {
            // A feature's sum of deviations from its mean is next to nothing: compare with their size.
            const double range = summaries.views[g].max[a] - summaries.views[g].min[a];
            ASSERT_NEAR(actual.sums[a], expected.sums[a], sum_tolerance * range * expected.view.mass);
            for (std::size_t b = 0; b <= a; ++b, ++i)
                ASSERT_NEAR(actual.cross[i], expected.cross[i],
                            tolerance * std::sqrt(square(a)) * std::sqrt(square(b)) + least)
                    << "group " << g << ", features " << a << ", " << b;
        }
    }
}

PGKM_CONFORMANCE(Moments, seeding_subjects(), case_list());

} // namespace
} // namespace conformance
