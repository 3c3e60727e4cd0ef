// PCA's and EM's sums through the GPU service: the bits of the backend behind it, and what a client
// can do wrong.
#include <cmath>
#include <cstring>

#include "service/wire/protocol.hpp"
#include "service/server/problems.hpp"
#include "service_fixture.hpp"

namespace pgkm::service {
namespace {

constexpr std::int32_t d = 7, k = 5;
constexpr std::int64_t n = 3000;

std::vector<double> waves(std::size_t count, double step)
{
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = 1.0 + std::sin(step * static_cast<double>(i));
    return values;
}

// Rows in a backend: directly, or, with a channel, through the service.
class Opened {
  public:
    Opened(const PgkmBackend *table, int channel, const PgkmPoints &points) : table_(table)
    {
        PgkmOpen open = {};
        open.struct_size = sizeof open;
        open.channel = channel;
        PgkmError error;
        EXPECT_EQ(table->open(&open, &context_, &error), PGKM_OK) << error.text;
        EXPECT_EQ(table->load(context_, &points, &data, &error), PGKM_OK) << error.text;
    }
    ~Opened()
    {
        table_->unload(data);
        table_->close(context_);
    }
    PgkmData *data = nullptr;

  private:
    const PgkmBackend *table_;
    PgkmContext *context_ = nullptr;
};

PgkmProblem rows_of(std::int64_t first, std::int64_t count)
{
    PgkmProblem problem = {};
    problem.first_row = first;
    problem.n_rows = count;
    problem.k = -1; // nobody reads it
    return problem;
}

const std::vector<PgkmProblem> problems = {rows_of(0, 1000), rows_of(1000, 1), rows_of(1500, n - 1500)};

class ServiceSums : public Service {
  protected:
    ServiceSums()
        : values_(waves(n * d, 0.7)), points_{values_.data(), PGKM_FLOAT64, n, d, nullptr},
          direct_(cpu_backend(), 0, points_), served_(client_backend(), connect(), points_)
    {
    }

    const std::vector<double> values_;
    const PgkmPoints points_;
    Opened direct_, served_;
};

TEST_F(ServiceSums, MomentsOfManyProblems)
{
    const std::vector<double> shift = waves(d, 0.3);
    const auto take = [&](const PgkmBackend *table, PgkmData *data) {
        std::vector<double> out(problems.size() * (d + d * (d + 1) / 2), -1.0);
        std::vector<PgkmMoments> moments;
        for (double *at = out.data(); moments.size() < problems.size(); at += d + d * (d + 1) / 2)
            moments.push_back({shift.data(), at, at + d, 0.0});
        PgkmError error;
        EXPECT_EQ(table->moments(data, problems.data(), 3, moments.data(), &error), PGKM_OK) << error.text;
        return out;
    };
    EXPECT_EQ(take(client_backend(), served_.data), take(cpu_backend(), direct_.data));
}

// Everything that an E step over the problems gives, in a row.
std::vector<double> em_step(const PgkmBackend *table, PgkmData *data, PgkmCovariance type, bool given, bool sums_wanted)
{
    const std::size_t matrix = type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED ? d * d : d;
    const std::vector<double> means = waves(k * d, 0.9), log_weights(k, -std::log(k)), determinants(k, 0.25);
    std::vector<double> factors = waves(k * matrix, 0.1);
    std::vector<std::int32_t> labels(n);
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(i % k);
    for (std::size_t i = 0; matrix == d * d && i < factors.size(); ++i)
        if (i % d > i / d % d) // above the diagonal
            factors[i] = 0.0;
    const std::size_t second = type == PGKM_COVARIANCE_FULL   ? k * (d * (d + 1) / 2)
                               : type == PGKM_COVARIANCE_TIED ? 0
                                                              : k * d;
    std::vector<double> out(problems.size() * (1 + k + k * d + second), -1.0);
    std::vector<std::int32_t> found(problems.size() * n, -1);
    std::vector<PgkmMixture> mixtures;
    std::vector<PgkmMixtureSums> sums;
    double *at = out.data();
    for (std::size_t p = 0; p < problems.size(); ++p, at += k + k * d + second) {
        mixtures.push_back({k, type, log_weights.data(), means.data(), factors.data(), determinants.data(),
                            given ? labels.data() : nullptr});
        sums.push_back({-1.0, at, at + k, second == 0 ? nullptr : at + k + k * d, given ? nullptr : &found[p * n]});
        if (!sums_wanted)
            sums.back() = {-1.0, nullptr, nullptr, nullptr, &found[p * n]};
    }
    PgkmError error;
    EXPECT_EQ(table->em_step(data, problems.data(), 3, mixtures.data(), sums.data(), &error), PGKM_OK) << error.text;
    for (const PgkmMixtureSums &one : sums)
        *at++ = one.log_likelihood;
    out.insert(out.end(), found.begin(), found.end());
    return out;
}

TEST_F(ServiceSums, EmStepsOfManyProblems)
{
    for (const PgkmCovariance type :
         {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG, PGKM_COVARIANCE_SPHERICAL})
        for (const bool given : {false, true})
            EXPECT_EQ(em_step(client_backend(), served_.data, type, given, true),
                      em_step(cpu_backend(), direct_.data, type, given, true))
                << "type " << type << (given ? ", labels given" : "");
    EXPECT_EQ(em_step(client_backend(), served_.data, PGKM_COVARIANCE_FULL, false, false),
              em_step(cpu_backend(), direct_.data, PGKM_COVARIANCE_FULL, false, false))
        << "labels alone";
}

// Triangles of many features: an arena of tens of megabytes, within the context's limit of memory.
TEST_F(ServiceSums, LargeTriangles)
{
    constexpr std::int32_t wide = 1500;
    const std::vector<double> values = waves(2 * wide, 0.7), shift(wide, 0.5);
    const PgkmPoints points = {values.data(), PGKM_FLOAT64, 2, wide, nullptr};
    const Opened direct(cpu_backend(), 0, points), served(client_backend(), connect(), points);
    const auto take = [&](const PgkmBackend *table, PgkmData *data) {
        std::vector<double> sums(wide), cross(std::size_t{wide} * (wide + 1) / 2);
        PgkmMoments moments = {shift.data(), sums.data(), cross.data(), 0.0};
        const PgkmProblem all = rows_of(0, 2);
        PgkmError error;
        EXPECT_EQ(table->moments(data, &all, 1, &moments, &error), PGKM_OK) << error.text;
        cross.insert(cross.end(), sums.begin(), sums.end());
        return cross;
    };
    EXPECT_EQ(take(client_backend(), served.data), take(cpu_backend(), direct.data));
}

TEST_F(ServiceSums, WhatTheBackendLacksIsKnownFromTheAnswer)
{
    static PgkmBackend without = *cpu_backend();
    without.reduce = [](PgkmData *, const PgkmProblem *, std::int64_t, const PgkmReduction *, PgkmReduced *,
                        PgkmError *error) { return set_error(error, PGKM_UNSUPPORTED, "no such thing"); };
    const auto has_reduce = [] {
        PgkmError error = {};
        return client_backend()->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error);
    };
    EXPECT_EQ(has_reduce(), PGKM_OK);
    {
        const std::string path = this->path() + ".without";
        Server other(without, path.c_str(), {4, std::uint64_t{1} << 30});
        const int channel = pgkm_service_connect(path.c_str());
        PgkmError error;
        ASSERT_EQ(pgkm_service_ready(channel, 5000, &error), 1);
        EXPECT_EQ(has_reduce(), PGKM_UNSUPPORTED);
        pgkm_service_disconnect(channel);
    }
    connect();
    EXPECT_EQ(has_reduce(), PGKM_OK) << "as the last answer says";
}

TEST_F(ServiceSums, RefusesMixturesThatCannotBe)
{
    Link link(connect(), {}, {}, 0);
    ASSERT_NO_FATAL_FAILURE(load_rows(link));
    link.arena().grow(std::uint64_t{1} << 16);
    const auto refused = [&](Op op, std::int32_t components, std::int32_t type, std::uint32_t parts,
                             std::int32_t label) {
        std::memset(link.arena().get(), 0, link.arena().bytes());
        Walk walk({2, PGKM_FLOAT32}, 1, link.arena().get());
        WireProblem &problem = *walk.problems();
        problem.n_rows = 100;
        problem.k = components;
        problem.covariance_type = type;
        problem.parts = parts;
        if (op == Op::em_step && (parts & part_given_labels) != 0)
            walk.next(problem).given_labels[99] = label;
        Request request = request_of(op);
        request.call.n_problems = 1;
        return answer(link, request);
    };
    const std::uint32_t density = part_means | part_density | part_labels,
                        sums = part_means | part_given_labels | part_mixture_sums;
    EXPECT_EQ(refused(Op::em_step, 0, PGKM_COVARIANCE_FULL, density, 0), PGKM_INVALID) << "no components";
    EXPECT_EQ(refused(Op::em_step, 3, 4, density, 0), PGKM_INVALID) << "no such type";
    EXPECT_EQ(refused(Op::em_step, 3, -1, density, 0), PGKM_INVALID) << "no such type";
    EXPECT_EQ(refused(Op::em_step, 3, PGKM_COVARIANCE_FULL, part_density, 0), PGKM_INVALID) << "no means";
    EXPECT_EQ(refused(Op::em_step, 3, PGKM_COVARIANCE_FULL, part_means, 0), PGKM_INVALID) << "no density, no labels";
    EXPECT_EQ(refused(Op::em_step, 3, PGKM_COVARIANCE_FULL, part_means | part_given_labels, 0), PGKM_INVALID)
        << "no sums";
    EXPECT_EQ(refused(Op::em_step, 3, PGKM_COVARIANCE_DIAG, sums, 3), PGKM_INVALID) << "a label of no component";
    EXPECT_EQ(refused(Op::em_step, 3, PGKM_COVARIANCE_DIAG, sums, -1), PGKM_INVALID) << "a label of no component";
    EXPECT_EQ(refused(Op::em_step, 1 << 20, PGKM_COVARIANCE_FULL, density, 0), PGKM_INVALID)
        << "an arena that does not hold it";
    EXPECT_EQ(refused(Op::moments, 0, PGKM_COVARIANCE_FULL, part_statistics, 0), PGKM_INVALID) << "no sums";
    EXPECT_EQ(refused(Op::moments, 0, PGKM_COVARIANCE_FULL, part_moments, 0), PGKM_OK);
    EXPECT_EQ(refused(Op::em_step, 3, PGKM_COVARIANCE_DIAG, sums, 2), PGKM_OK);
}

TEST(ServiceArrays, SizesThatOverflowAreRefused)
{
    WireProblem problem = {};
    problem.n_rows = 1;
    problem.k = INT32_MAX;
    problem.covariance_type = PGKM_COVARIANCE_FULL;
    problem.parts = part_density;
    Walk walk({INT32_MAX, PGKM_FLOAT32}, 1, nullptr);
    EXPECT_THROW(walk.next(problem), Error);
}

} // namespace
} // namespace pgkm::service
