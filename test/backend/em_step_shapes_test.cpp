// One E step for every range of shapes that a backend may have a kernel of its own for.
#include "mixtures.hpp"

namespace conformance {
namespace {

// Bounds that all features share.
struct Bounds {
    Bounds(std::int32_t d, double least, double most) : min(static_cast<std::size_t>(d), least), max(min.size(), most)
    {
        summary.min = min.data();
        summary.max = max.data();
    }
    Bounds(const Bounds &) = delete;
    Bounds &operator=(const Bounds &) = delete;

    std::vector<double> min, max;
    PgkmSummary summary = {};
};

template <typename T, typename Distribution>
std::vector<T> drawn(std::int64_t count, std::int32_t seed, Distribution distribution)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T &value : values)
        value = static_cast<T>(distribution(random));
    return values;
}

// One group.
template <typename T>
Case case_of(const std::vector<T> &values, std::int32_t d, std::int32_t k)
{
    Case data = {};
    data.element = sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64;
    data.d = d;
    data.n = static_cast<std::int64_t>(values.size()) / d;
    const auto *bytes = reinterpret_cast<const std::byte *>(values.data());
    data.values.assign(bytes, bytes + values.size() * sizeof(T));
    data.groups = {{0, data.n, k}};
    return data;
}

// Subjects that take the same rows, so that the reference, which is slow, works on them once for all.
struct Alike {
    std::string name;
    std::vector<Subject> subjects;
};

void PrintTo(const Alike &alike, std::ostream *out)
{
    *out << alike.name;
}

// Kernels are made for ranges of features and components: what lies at their ends, and one beyond.
class EmStepShapes : public testing::TestWithParam<Alike> {
  protected:
    // A device's kernels depend on how many rows there are. The CPU's are the same for each block of rows (ManyRows has
    // many of them), and take longer than a device.
    static bool in_plugin() { return GetParam().name == "plugin"; }

    // One step, twice, under a mixture against the reference's.
    static void check(const Case &data, PgkmCovariance type, const Mixture &mixture, const Bounds &bounds,
                      double least_tolerance = 0.0)
    {
        SCOPED_TRACE("type " + std::to_string(type) + ", d " + std::to_string(data.d) + ", k " +
                     std::to_string(mixture.k));
        Session reference(reference_subject(), data.points());
        Sums expected(data, 0, mixture, type);
        ASSERT_EQ(expected.take(reference, mixture.rebound(type)), PGKM_OK);
        for (const Subject &subject : GetParam().subjects)
            check(subject, data, type, mixture, bounds, expected, least_tolerance);
    }
    static void check(const Subject &subject, const Case &data, PgkmCovariance type, const Mixture &mixture,
                      const Bounds &bounds, const Sums &expected, double least_tolerance)
    {
        SCOPED_TRACE(subject.name);
        Session session(subject, data.points());
        Sums actual(data, 0, mixture, type);
        actual.labels.clear(); // sums alone
        Sums again = actual;
        PGKM_REQUIRE_OK(actual.take(session, mixture.rebound(type)), session, subject);
        PGKM_REQUIRE_OK(again.take(session, mixture.rebound(type)), session, subject);
        EXPECT_TRUE(actual.same(again));
        expect_near(expected, actual, type, bounds.summary,
                    std::max(tolerance_of(subject, data.element), least_tolerance));
    }

    // `tightness` times the factors of Mixture: means lie as much farther apart than their rows. All values
    // are multiplied by `scale`.
    template <typename T>
    static void check(std::int32_t d, std::int32_t k, double tightness, double scale = 1.0)
    {
        const std::int64_t n = in_plugin() ? std::clamp<std::int64_t>(5'000'000 / (k * d * d), 67, 3001)
                                           : std::clamp<std::int64_t>(500'000 / (k * d * d), 33, 3001);
        std::normal_distribution<double> normal(1e3, 5.0);
        const auto scaled = [&](auto &random) { return scale * normal(random); };
        const Case data = case_of(drawn<T>(n * d, d * 1000 + k, scaled), d, k);
        const Bounds bounds(d, 980.0 * scale, 1020.0 * scale);
        for (const PgkmCovariance type : all_types) {
            Mixture mixture(data, 0, type, bounds.summary, k);
            for (double &factor : mixture.factors)
                factor *= tightness;
            check(data, type, mixture, bounds);
        }
    }
};

TEST_P(EmStepShapes, NearReference)
{
    for (const std::int32_t d : {1, 2, 7, 8, 9, 16, 17, 24, 25, 32, 33, 48, 49, 64, 65})
        for (const std::int32_t k : {1, 3, 16, 17, 32, 33, 64, 65}) {
            check<float>(d, k, 1.0);
            check<double>(d, k, 1.0);
        }
    check<double>(70, 600, 1.0);
    check<float>(130, 131, 1.0);
}

TEST_P(EmStepShapes, ComponentsFarApart)
{
    for (const double tightness : {10.0, 1e3, 1e6})
        for (const std::int32_t d : {3, 16, 32}) {
            check<float>(d, 16, tightness);
            check<double>(d, 16, tightness);
        }
}

TEST_P(EmStepShapes, SquaresAtTheEndsOfFloat64)
{
    for (const double scale : {1e-155, 1e-140, 1e148})
        for (const std::int32_t d : {3, 16})
            check<double>(d, 16, 1.0, scale);
}

// More than one block's or warp's turn takes, and not a multiple of what it takes.
TEST_P(EmStepShapes, ManyRows)
{
    struct Shape {
        std::int32_t d, k;
        PgkmCovariance type;
    };
    for (const Shape shape : {Shape{41, 64, PGKM_COVARIANCE_DIAG},
                              {60, 50, PGKM_COVARIANCE_DIAG},
                              {20, 20, PGKM_COVARIANCE_SPHERICAL},
                              {50, 9, PGKM_COVARIANCE_DIAG},
                              {5, 7, PGKM_COVARIANCE_DIAG},
                              {5, 7, PGKM_COVARIANCE_FULL}}) {
        const std::normal_distribution<double> normal(1e3, 5.0);
        const Case data = case_of(drawn<float>(30'011 * shape.d, shape.d, normal), shape.d, shape.k);
        const Bounds bounds(shape.d, 980.0, 1020.0);
        check(data, shape.type, Mixture(data, 0, shape.type, bounds.summary, shape.k), bounds);
    }
}

// Many components of which few count for a row, and rows for which all of them do; copies of rows, components of tiny
// variance and others that no row belongs to.
TEST_P(EmStepShapes, FewComponentsCount)
{
    struct Shape {
        std::int32_t d, k;
        PgkmCovariance type;
        double apart; // centres' range, in units of the spread
    };
    for (const Shape shape : {Shape{9, 130, PGKM_COVARIANCE_DIAG, 100.0},
                              {40, 200, PGKM_COVARIANCE_DIAG, 20.0},
                              {40, 200, PGKM_COVARIANCE_SPHERICAL, 20.0},
                              {33, 129, PGKM_COVARIANCE_SPHERICAL, 3000.0},
                              {150, 128, PGKM_COVARIANCE_DIAG, 30.0}}) {
        std::mt19937_64 random(static_cast<std::uint64_t>(shape.d));
        std::normal_distribution<double> normal(0.0, 1.0);
        std::uniform_real_distribution<double> uniform(0.0, shape.apart);
        const auto d = static_cast<std::size_t>(shape.d), k = static_cast<std::size_t>(shape.k);
        std::vector<double> centres(k * d);
        for (double &value : centres)
            value = 1e3 + uniform(random);
        constexpr std::size_t n = 4'603;
        std::vector<double> values(n * d);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t f = 0; f < d; ++f) {
                double &value = values[i * d + f];
                if (i % 64 == 63) // a copy of the row before
                    value = values[(i - 1) * d + f];
                else if (i % 500 == 1) // amid all components
                    value = 1e3 + 0.5 * shape.apart;
                else
                    value = centres[i % (k - 3) * d + f] + normal(random);
            }
        const Case data = case_of(values, shape.d, shape.k);
        const Bounds bounds(shape.d, 990.0, 1010.0 + shape.apart);
        Mixture mixture(data, 0, shape.type, bounds.summary, shape.k);
        mixture.means = centres;
        std::uniform_real_distribution<double> factor(0.5, 2.0);
        for (double &value : mixture.factors)
            value = factor(random);
        const std::size_t own = mixture.factors.size() / k; // of a component
        std::fill_n(mixture.factors.begin(), own, 1e4);
        std::fill_n(mixture.factors.begin() + static_cast<std::ptrdiff_t>(own), own, 0.05); // counts for all rows
        check(data, shape.type, mixture, bounds);
        std::vector<float> narrow(values.begin(), values.end());
        check(case_of(narrow, shape.d, shape.k), shape.type, mixture, bounds);
    }
}

// Rows whose log densities are some -1e10, rounded to 1e-6: the largest is what exp() must be taken about.
TEST_P(EmStepShapes, RowsFarFromAllComponents)
{
    for (const PgkmCovariance type : all_types)
        for (const std::int32_t d : {3, 16, 40}) {
            auto values = drawn<double>(203 * d, d, std::uniform_real_distribution<double>(-1.0, 1.0));
            // Means lie on a line through the origin, rows far out at right angles to it, so that log
            // densities there differ by little.
            for (std::int64_t row = 100; row < 203; row += 17)
                values[static_cast<std::size_t>(row * d)] = 5e4 * static_cast<double>(row % 3 + 1);
            const Case data = case_of(values, d, 3);
            Mixture mixture(data, 0, type, Bounds(d, -1.0, 1.0).summary, 3);
            for (std::size_t j = 0; j < 3; ++j)
                mixture.means[j * static_cast<std::size_t>(d)] = 0.0;
            std::fill(mixture.factors.begin(), mixture.factors.end(), 1.0);
            const auto size = static_cast<std::size_t>(d);
            if (type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED)
                for (std::size_t i = 0; i < mixture.factors.size(); ++i)
                    mixture.factors[i] = i / size % size == i % size ? 1.0 : 0.0;
            check(data, type, mixture, Bounds(d, -2e5, 2e5), 1e-6);
        }
}

// Rows amid 1e155, whose own squares would overflow while their differences' do not.
TEST_P(EmStepShapes, OriginWhoseSquareOverflows)
{
    for (const std::int32_t d : {3, 16, 40}) {
        std::uniform_int_distribution<int> step(-20, 20);
        const auto near = [&](auto &random) { return 1e155 + step(random) * 4e139; };
        const Case data = case_of(drawn<double>(203 * d, d, near), d, 3);
        const Bounds bounds(d, 1e155 - 8e140, 1e155 + 8e140);
        for (const PgkmCovariance type : {PGKM_COVARIANCE_DIAG, PGKM_COVARIANCE_SPHERICAL}) {
            Mixture mixture(data, 0, type, bounds.summary, 3);
            std::fill(mixture.factors.begin(), mixture.factors.end(), 2e-140);
            check(data, type, mixture, bounds);
        }
    }
}

// So many that their parameters and sums are megabytes.
TEST_P(EmStepShapes, ThousandsOfGroups)
{
    constexpr std::int64_t groups = 4000, rows = 20;
    constexpr std::int32_t d = 8, k = 4;
    Case data = case_of(drawn<double>(groups * rows * d, 7, std::normal_distribution<double>(0.0, 5.0)), d, k);
    data.groups.clear();
    for (std::int64_t g = 0; g < groups; ++g)
        data.groups.push_back({g * rows, rows, k});
    const Bounds bounds(d, -20.0, 20.0);
    Session reference(reference_subject(), data.points());
    for (const PgkmCovariance type : all_types) {
        std::vector<Mixture> mixtures;
        std::vector<Sums> blank, expected;
        for (std::size_t g = 0; g < groups; ++g) {
            mixtures.emplace_back(data, g, type, bounds.summary);
            blank.emplace_back(data, g, mixtures[g], type);
            blank[g].labels.clear();
        }
        expected = blank;
        std::vector<PgkmProblem> problems;
        std::vector<PgkmMixture> views;
        for (std::size_t g = 0; g < groups; ++g) {
            problems.push_back(blank[g].problem);
            views.push_back(mixtures[g].rebound(type));
            expected[g].labels.resize(rows);
            ASSERT_EQ(expected[g].take(reference, views[g]), PGKM_OK);
        }
        for (const Subject &subject : GetParam().subjects) {
            std::vector<Sums> actual = blank;
            std::vector<PgkmMixtureSums> sums;
            for (Sums &one : actual)
                sums.push_back({0.0, one.masses.data(), one.first.data(), one.second.data(), nullptr});
            Session session(subject, data.points());
            PGKM_REQUIRE_OK(session.em_step(problems.data(), problems.size(), views.data(), sums.data()), session,
                            subject);
            for (std::size_t g = 0; g < groups; ++g) {
                SCOPED_TRACE(subject.name + ", type " + std::to_string(type) + ", group " + std::to_string(g));
                actual[g].view = sums[g];
                expect_near(expected[g], actual[g], type, bounds.summary, tolerance_of(subject, data.element));
            }
        }
    }
}

// Sanitized (README.md) not through the service, which hands arrays of any shape on: EmStep has it do so.
std::vector<Alike> alike()
{
    Alike cpu = {"cpu", {}}, plugin = {"plugin", {}};
    for (const Subject &one : plain_subjects())
        if (one.device >= 0)
            plugin.subjects.push_back(one);
        else if (!sanitized || one.name != "service")
            cpu.subjects.push_back(one);
    return plugin.subjects.empty() ? std::vector<Alike>{cpu} : std::vector<Alike>{cpu, plugin};
}

INSTANTIATE_TEST_SUITE_P(All, EmStepShapes, testing::ValuesIn(alike()),
                         [](const testing::TestParamInfo<Alike> &info) { return info.param.name; });

} // namespace
} // namespace conformance
