// The sums of PCA over more rows than the common cases have: many stages and segments of a device's
// reduction, squares of features, rows far out, many problems in one call.
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "reference/moments.hpp"
#include "parameters.hpp"
#include "session.hpp"

namespace conformance {
namespace {

struct Shape {
    std::int64_t n;
    std::int32_t d;
    PgkmElement element;
    double outlier; // 0, or the value of the last row's first feature
};

void PrintTo(const Shape &shape, std::ostream *out)
{
    *out << shape.n << " x " << shape.d;
}

struct Rows {
    explicit Rows(const Shape &shape) : shape(shape)
    {
        std::mt19937_64 random(static_cast<std::uint64_t>(shape.d));
        std::normal_distribution<double> normal;
        const auto d = static_cast<std::size_t>(shape.d);
        for (std::size_t f = 0; f < d; ++f)
            shift.push_back(std::ldexp(1.0 / 3.0, static_cast<int>(f % 17)));
        for (std::size_t i = 0; i < static_cast<std::size_t>(shape.n) * d; ++i) {
            const double value = shift[i % d] + normal(random) * std::pow(10.0, static_cast<double>(i % 5) - 2.0);
            wide.push_back(value);
            narrow.push_back(static_cast<float>(value));
        }
        if (shape.outlier != 0.0) {
            wide[wide.size() - d] = shape.outlier;
            narrow[narrow.size() - d] = static_cast<float>(shape.outlier);
        }
    }
    PgkmPoints points() const
    {
        const void *values = shape.element == PGKM_FLOAT32 ? static_cast<const void *>(narrow.data()) : wide.data();
        return {values, shape.element, shape.n, shape.d, nullptr};
    }

    Shape shape;
    std::vector<double> shift, wide;
    std::vector<float> narrow;
};

// The sums of some problems over the same rows.
struct Sums {
    Sums(const Rows &rows, const std::vector<PgkmProblem> &problems) : list(problems), values(problems.size())
    {
        const std::size_t d = rows.shift.size();
        for (std::size_t p = 0; p < problems.size(); ++p) {
            values[p].assign(d + d * (d + 1) / 2, -1.0);
            views.push_back({rows.shift.data(), values[p].data(), values[p].data() + d, 0.0});
        }
    }
    void take(const Subject &subject, const Rows &rows)
    {
        Session session(subject, rows.points());
        ASSERT_EQ(session.moments(list.data(), list.size(), views.data()), PGKM_OK) << session.error.text;
    }

    std::vector<PgkmProblem> list;
    std::vector<std::vector<double>> values;
    std::vector<PgkmMoments> views;
};

PgkmProblem problem(std::int64_t first, std::int64_t n)
{
    PgkmProblem made = {};
    made.first_row = first;
    made.n_rows = n;
    return made;
}

Sums reference(const Rows &rows, const PgkmProblem &of)
{
    Sums sums(rows, {of});
    if (rows.shape.element == PGKM_FLOAT32)
        pgkm::reference_moments_of<float>(rows.points(), of, sums.views[0]);
    else
        pgkm::reference_moments_of<double>(rows.points(), of, sums.views[0]);
    return sums;
}

// Made once for all subjects: the reference is slow.
struct Known {
    explicit Known(const Shape &shape) : rows(shape), sums(reference(rows, problem(0, shape.n))) {}

    const Rows rows;
    const Sums sums;

    static const Known &of(const Shape &shape)
    {
        static std::map<std::tuple<std::int64_t, std::int32_t, int>, std::unique_ptr<Known>> all;
        std::unique_ptr<Known> &known = all[{shape.n, shape.d, shape.element}];
        if (known == nullptr)
            known = std::make_unique<Known>(shape);
        return *known;
    }
};

class MomentsOfShapes : public testing::TestWithParam<std::tuple<Subject, Shape>> {
  protected:
    const Subject &subject() const { return std::get<0>(GetParam()); }
    const Rows &rows = Known::of(std::get<1>(GetParam())).rows;
};

TEST_P(MomentsOfShapes, NearReference)
{
    const PgkmProblem all = problem(0, rows.shape.n);
    const Sums &expected = Known::of(rows.shape).sums;
    Sums actual(rows, {all});
    actual.take(subject(), rows);
    const std::size_t d = rows.shift.size();
    const auto square = [&](std::size_t f) { return expected.values[0][d + f * (f + 1) / 2 + f]; };
    for (std::size_t a = 0, i = d; a < d; ++a) {
        // By Cauchy and Schwarz the sum is at most this.
        const double size = std::sqrt(square(a) * static_cast<double>(rows.shape.n));
        ASSERT_NEAR(actual.values[0][a], expected.values[0][a], 1e-12 * size);
        for (std::size_t b = 0; b <= a; ++b, ++i)
            ASSERT_NEAR(actual.values[0][i], expected.values[0][i], 1e-12 * std::sqrt(square(a)) * std::sqrt(square(b)))
                << "features " << a << ", " << b;
    }
}

// Problems in one call do not know of each other; nor do sums of rows that come in chunks.
TEST_P(MomentsOfShapes, CompanyAndChunksDoNotChangeBits)
{
    const std::int64_t n = rows.shape.n;
    Sums together(rows, {problem(0, 1), problem(1, n / 3), problem(n / 3 + 1, 5), problem(n / 3 + 6, n - n / 3 - 6)});
    together.take(subject(), rows);
    Subject resident = subject();
    resident.device_memory_limit = 0;
    const bool in_chunks = subject().device_memory_limit != 0;
    for (std::size_t p = 0; p < together.list.size(); ++p) {
        Sums alone(rows, {together.list[p]});
        alone.take(subject(), rows);
        EXPECT_EQ(together.values[p], alone.values[0]) << "problem " << p;
        if (!in_chunks)
            continue;
        Sums whole(rows, {together.list[p]});
        whole.take(resident, rows);
        EXPECT_EQ(together.values[p], whole.values[0]) << "problem " << p;
    }
}

std::vector<Shape> shapes()
{
    std::vector<Shape> list;
    for (const PgkmElement element : {PGKM_FLOAT32, PGKM_FLOAT64})
        for (const auto &[n, d] : {std::pair{50021, 3},
                                   {20011, 33},
                                   {10007, 64},
                                   {8009, 80},
                                   {8011, 97},
                                   {8191, 128},
                                   {3001, 129},
                                   {1511, 300}})
            list.push_back({n, d, element, 0.0});
    list.push_back({4001, 100, PGKM_FLOAT32, 1e9});
    return list;
}

std::string shape_name(const testing::TestParamInfo<std::tuple<Subject, Shape>> &info)
{
    const Shape &shape = std::get<1>(info.param);
    return std::get<0>(info.param).name + "__" + std::to_string(shape.n) + "x" + std::to_string(shape.d) +
           (shape.element == PGKM_FLOAT32 ? "_float32" : "_float64") + (shape.outlier != 0.0 ? "_outlier" : "");
}

INSTANTIATE_TEST_SUITE_P(All, MomentsOfShapes,
                         testing::Combine(testing::ValuesIn(seeding_subjects()), testing::ValuesIn(shapes())),
                         shape_name);

} // namespace
} // namespace conformance
