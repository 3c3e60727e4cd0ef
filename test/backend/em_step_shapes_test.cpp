// One E step for every range of shapes that a backend may have a kernel of its own for.
#include "engine/reference.hpp"
#include "mixtures.hpp"

namespace conformance {
namespace {

// Kernels are made for ranges of features and components: what lies at their ends, and one beyond.
class EmStepShapes : public testing::TestWithParam<Subject> {
protected:
    // `tightness` times the factors of Mixture: means lie as much farther apart than their rows.
    template <typename T>
    static void check(std::int32_t d, std::int32_t k, double tightness)
    {
        std::mt19937_64 random(static_cast<std::uint64_t>(d * 1000 + k));
        std::normal_distribution<double> normal(1e3, 5.0);
        const std::int64_t n = std::clamp<std::int64_t>(10'000'000 / (k * d * d), 67, 3001);
        std::vector<T> values(static_cast<std::size_t>(n * d));
        for (T &value : values)
            value = static_cast<T>(normal(random));
        Case data = {};
        data.element = sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64;
        data.n = n;
        data.d = d;
        const auto *bytes = reinterpret_cast<const std::byte *>(values.data());
        data.values.assign(bytes, bytes + values.size() * sizeof(T));
        data.groups = {{0, n, k}};
        std::vector<double> least(static_cast<std::size_t>(d), 980.0), most(least.size(), 1020.0);
        PgkmSummary summary = {};
        summary.min = least.data();
        summary.max = most.data();
        Session session(GetParam(), data.points());
        Session reference({"reference", pgkm::reference_backend(), -1, {}, 0, true}, data.points());
        for (const PgkmCovariance type : all_types) {
            SCOPED_TRACE("type " + std::to_string(type) + ", d " + std::to_string(d) + ", k " + std::to_string(k));
            Mixture mixture(data, 0, type, summary, k);
            for (double &factor : mixture.factors)
                factor *= tightness;
            Sums actual(data, 0, mixture, type), expected = actual;
            actual.labels.clear(); // sums alone
            PGKM_REQUIRE_OK(actual.take(session, mixture.view), session, GetParam());
            ASSERT_EQ(expected.take(reference, mixture.view), PGKM_OK);
            expect_near(expected, actual, type, summary, tolerance_of(GetParam(), data.element));
        }
    }
};

TEST_P(EmStepShapes, NearReference)
{
    if (unsupported_by(GetParam()))
        GTEST_SKIP() << "not in this backend";
    for (const std::int32_t d : {1, 2, 7, 8, 9, 16, 17, 24, 25, 32, 33, 65})
        for (const std::int32_t k : {1, 3, 16, 17, 32, 33}) {
            check<float>(d, k, 1.0);
            check<double>(d, k, 1.0);
        }
    check<double>(70, 600, 1.0);
}

TEST_P(EmStepShapes, ComponentsFarApart)
{
    if (unsupported_by(GetParam()))
        GTEST_SKIP() << "not in this backend";
    for (const double tightness : {10.0, 1e3, 1e6})
        for (const std::int32_t d : {3, 16, 32}) {
            check<float>(d, 16, tightness);
            check<double>(d, 16, tightness);
        }
}

INSTANTIATE_TEST_SUITE_P(All, EmStepShapes, testing::ValuesIn(plain_subjects()), subject_name);

} // namespace
} // namespace conformance
