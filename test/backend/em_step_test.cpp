// One E step with the sums of the M step: near the reference's, and the same bits for any number
// of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compare.hpp"
#include "engine/reference.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

constexpr PgkmCovariance all_types[] = {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG,
                                        PGKM_COVARIANCE_SPHERICAL};

// A mixture for one group of a case: means are rows of it, W is next to diagonal with the scale of the
// features.
struct Mixture {
    Mixture(const Case &data, std::size_t group, PgkmCovariance type, const PgkmSummary &summary)
        : k(std::min<std::int32_t>(data.groups[group].k, 20)), d(data.d)
    {
        std::mt19937_64 random(static_cast<std::uint64_t>(type) + 17);
        std::uniform_real_distribution<double> uniform(-1.0, 1.0);
        const PgkmPoints points = data.points();
        for (std::int32_t j = 0; j < k; ++j) {
            const std::int64_t row = data.groups[group].first + (j * 7919) % data.groups[group].n;
            log_weights.push_back(-std::log(k) + 0.1 * uniform(random));
            for (std::int32_t f = 0; f < d; ++f)
                means.push_back(points.element == PGKM_FLOAT32
                                    ? static_cast<const float *>(points.values)[row * d + f]
                                    : static_cast<const double *>(points.values)[row * d + f]);
        }
        std::vector<double> scale;
        for (std::int32_t f = 0; f < d; ++f)
            scale.push_back(4.0 / (summary.max[f] - summary.min[f] > 0.0 ? summary.max[f] - summary.min[f] : 1.0));
        const std::int32_t matrices = type == PGKM_COVARIANCE_FULL ? k : type == PGKM_COVARIANCE_TIED ? 1 : 0;
        for (std::int32_t j = 0; j < matrices; ++j)
            for (std::int32_t c = 0; c < d; ++c)
                for (std::int32_t f = 0; f < d; ++f)
                    factors.push_back(c == f  ? scale[static_cast<std::size_t>(f)]
                                      : f < c ? 0.3 / d * uniform(random) * scale[static_cast<std::size_t>(f)]
                                              : 0.0);
        for (std::int32_t j = 0; j < k && matrices == 0; ++j)
            for (std::int32_t f = 0; f < (type == PGKM_COVARIANCE_DIAG ? d : 1); ++f)
                factors.push_back(scale[static_cast<std::size_t>(f)] * (1.0 + 0.5 * uniform(random)));
        log_determinants.assign(static_cast<std::size_t>(k), 0.25);
        view = {k, type, log_weights.data(), means.data(), factors.data(), log_determinants.data(), nullptr};
    }

    std::int32_t k, d;
    std::vector<double> log_weights, means, factors, log_determinants;
    PgkmMixture view;
};

struct Sums {
    Sums(const Case &data, std::size_t group, const Mixture &mixture, PgkmCovariance type)
        : masses(static_cast<std::size_t>(mixture.k)), first(masses.size() * static_cast<std::size_t>(mixture.d)),
          labels(static_cast<std::size_t>(data.groups[group].n))
    {
        const auto d = static_cast<std::size_t>(mixture.d);
        if (type != PGKM_COVARIANCE_TIED)
            second.resize(masses.size() * (type == PGKM_COVARIANCE_FULL ? d * (d + 1) / 2 : d));
        problem.first_row = data.groups[group].first;
        problem.n_rows = data.groups[group].n;
    }
    PgkmStatus take(Session &session, const PgkmMixture &mixture)
    {
        view = {0.0, masses.data(), first.data(), second.data(), labels.data()};
        if (mixture.labels != nullptr)
            view.labels = nullptr;
        return session.em_step(&problem, 1, &mixture, &view);
    }
    bool same(const Sums &other) const
    {
        return view.log_likelihood == other.view.log_likelihood && masses == other.masses && first == other.first &&
               second == other.second && labels == other.labels;
    }

    std::vector<double> masses, first, second;
    std::vector<std::int32_t> labels;
    PgkmMixtureSums view = {};
    PgkmProblem problem = {};
};

class EmStep : public Conformance {
protected:
    bool unsupported() const
    {
        PgkmError error = {};
        return subject().table->em_step(nullptr, nullptr, 0, nullptr, nullptr, &error) == PGKM_UNSUPPORTED;
    }

    // Sums against their size: that of their rows' parts.
    void expect_near(const Sums &expected, const Sums &actual, PgkmCovariance type, const PgkmSummary &summary) const
    {
        const auto n = static_cast<double>(expected.labels.size());
        const auto d = static_cast<std::size_t>(data().d);
        const auto range = [&](std::size_t f) { return summary.max[f] - summary.min[f]; };
        constexpr double tolerance = 1e-10, least = std::numeric_limits<double>::min();
        EXPECT_NEAR(actual.view.log_likelihood, expected.view.log_likelihood,
                    tolerance * (std::fabs(expected.view.log_likelihood) + n));
        for (std::size_t j = 0; j < expected.masses.size(); ++j) {
            ASSERT_NEAR(actual.masses[j], expected.masses[j], tolerance * n) << "component " << j;
            const std::size_t size = expected.second.size() / expected.masses.size();
            for (std::size_t a = 0, i = 0; a < d; ++a) {
                ASSERT_NEAR(actual.first[j * d + a], expected.first[j * d + a], tolerance * n * range(a))
                    << "component " << j << ", feature " << a;
                if (size == 0)
                    continue;
                for (std::size_t b = type == PGKM_COVARIANCE_FULL ? 0 : a; b <= a; ++b, ++i)
                    ASSERT_NEAR(actual.second[j * size + i], expected.second[j * size + i],
                                tolerance * n * range(a) * range(b) + least)
                        << "component " << j << ", features " << a << ", " << b;
            }
        }
    }
};

TEST_P(EmStep, NearReference)
{
    if (unsupported())
        GTEST_SKIP() << "not in this backend";
    PgkmPoints points = data().points();
    points.weights = nullptr;
    Session session(subject(), points), one_thread(subject(), points, {}, 1);
    Session reference({"reference", pgkm::reference_backend(), -1, {}, 0, true}, points);
    const Summaries &summaries = Expected::of(data()).summaries();
    for (const PgkmCovariance type : all_types) {
        const Mixture mixture(data(), 0, type, summaries.views[0]);
        Sums actual(data(), 0, mixture, type), alone = actual, expected = actual;
        PGKM_REQUIRE_OK(actual.take(session, mixture.view), session, subject());
        PGKM_REQUIRE_OK(alone.take(one_thread, mixture.view), one_thread, subject());
        ASSERT_EQ(expected.take(reference, mixture.view), PGKM_OK);
        EXPECT_TRUE(actual.same(alone)) << "type " << type;
        expect_near(expected, actual, type, summaries.views[0]);
        // The largest of several that are equal but for rounding may be another.
        std::int64_t different = 0;
        for (std::size_t i = 0; i < actual.labels.size(); ++i)
            different += actual.labels[i] != expected.labels[i];
        EXPECT_LE(different, data().name.find("grid") != std::string::npos ? data().n : data().n / 100)
            << "type " << type;
    }
}

TEST_P(EmStep, SumsOfGivenLabels)
{
    if (unsupported())
        GTEST_SKIP() << "not in this backend";
    PgkmPoints points = data().points();
    points.weights = nullptr;
    Session session(subject(), points);
    Session reference({"reference", pgkm::reference_backend(), -1, {}, 0, true}, points);
    const Summaries &summaries = Expected::of(data()).summaries();
    for (const PgkmCovariance type : all_types) {
        Mixture mixture(data(), 0, type, summaries.views[0]);
        std::vector<std::int32_t> labels;
        for (std::int64_t i = 0; i < data().groups[0].n; ++i)
            labels.push_back(static_cast<std::int32_t>(i * 31 % mixture.k));
        mixture.view.labels = labels.data();
        Sums actual(data(), 0, mixture, type), expected = actual;
        PGKM_REQUIRE_OK(actual.take(session, mixture.view), session, subject());
        ASSERT_EQ(expected.take(reference, mixture.view), PGKM_OK);
        EXPECT_EQ(actual.masses, expected.masses);
        expect_near(expected, actual, type, summaries.views[0]);
    }
}

TEST_P(EmStep, WeightsAreRefused)
{
    if (unsupported() || data().weights.empty())
        GTEST_SKIP() << "not in this backend, or no weights";
    Session session(subject(), data().points());
    const Mixture mixture(data(), 0, PGKM_COVARIANCE_DIAG, Expected::of(data()).summaries().views[0]);
    Sums sums(data(), 0, mixture, PGKM_COVARIANCE_DIAG);
    EXPECT_EQ(sums.take(session, mixture.view), PGKM_INVALID);
}

// A backend may lack the function, but must say so.
TEST(EmStepOf, EveryTable)
{
    for (const Subject &subject : plain_subjects()) {
        PgkmError error = {};
        const PgkmStatus status = subject.table->em_step(nullptr, nullptr, 0, nullptr, nullptr, &error);
        EXPECT_TRUE(status == PGKM_OK || status == PGKM_UNSUPPORTED) << subject.name;
        EXPECT_EQ(error.status, status);
    }
}

// The reference takes the square of the number of features; what is left has up to 128 of them.
std::vector<const Case *> cases()
{
    std::vector<const Case *> list = case_list();
    std::erase_if(list, [](const Case *one) { return one->work() * one->d > 20'000'000; });
    return list;
}

PGKM_CONFORMANCE(EmStep, seeding_subjects(), cases());

} // namespace
} // namespace conformance
