// PCA's and EM's sums through the GPU service: the bits of the backend behind it, and what a client
// can do wrong.
#include <cmath>
#include <cstring>

#include "service/wire/protocol.hpp"
#include "service/server/problems.hpp"
#include "service_fixture.hpp"
#include "support/problem_call.hpp"

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
    const std::vector<double> numbers(3 * 2 * 2, 0.5);
    std::vector<std::int32_t> labels(100, 2), found(100);
    std::vector<double> masses(3), first(3 * 2), second(3 * 3);
    PgkmProblem problem = rows_of(0, 100);
    PgkmMixture mixture = {};
    PgkmMixtureSums sums = {};
    PgkmMoments moments = {numbers.data(), masses.data(), second.data(), 0.0};
    Call call = {};
    call.n_problems = 1;
    call.problems = &problem;
    call.mixtures = &mixture;
    call.sums = &sums;
    call.moments = &moments;
    const auto with_density = [&] {
        call.function = Function::em_step;
        mixture = {3, PGKM_COVARIANCE_FULL, numbers.data(), numbers.data(), numbers.data(), numbers.data(), nullptr};
        sums = {0.0, nullptr, nullptr, nullptr, found.data()};
    };
    const auto with_labels = [&](std::int32_t last) {
        with_density();
        labels[99] = last;
        mixture.covariance_type = PGKM_COVARIANCE_DIAG;
        mixture.labels = labels.data();
        sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
    };
    enum Number { first_row, n_rows, k, type, n_means };
    const auto forged = [&](Number number, std::int64_t value) {
        with_density();
        return answer_call(link, call, [&](CallRequest &, std::int64_t *at) { at[number] = value; });
    };
    EXPECT_EQ(forged(k, 3), PGKM_OK);
    EXPECT_EQ(forged(k, 0), PGKM_INVALID) << "no components";
    EXPECT_EQ(forged(k, 1 << 20), PGKM_INVALID) << "more than there are means";
    EXPECT_EQ(forged(type, PGKM_COVARIANCE_SPHERICAL + 1), PGKM_INVALID) << "no such type";
    EXPECT_EQ(forged(type, -1), PGKM_INVALID) << "no such type";
    EXPECT_EQ(forged(type, PGKM_COVARIANCE_TIED), PGKM_INVALID) << "factors of another";
    EXPECT_EQ(forged(n_means, 0), PGKM_INVALID) << "no means";
    with_density();
    mixture.factors = nullptr;
    EXPECT_EQ(answer_call(link, call), PGKM_INVALID) << "no density, no labels";
    with_labels(2);
    EXPECT_EQ(answer_call(link, call), PGKM_OK);
    with_labels(3);
    EXPECT_EQ(answer_call(link, call), PGKM_INVALID) << "a label of no component";
    with_labels(-1);
    EXPECT_EQ(answer_call(link, call), PGKM_INVALID) << "a label of no component";
    with_labels(2);
    sums.masses = nullptr;
    EXPECT_EQ(answer_call(link, call), PGKM_INVALID) << "no sums";
    call.function = Function::moments;
    EXPECT_EQ(answer_call(link, call), PGKM_OK);
    EXPECT_EQ(answer_call(link, call, [](CallRequest &, std::int64_t *at) { at[3] = 1; }), PGKM_INVALID)
        << "sums of another length";
}

TEST(ServiceArrays, SizesThatOverflowAreRefused)
{
    const double one = 1.0;
    PgkmProblem problem = rows_of(0, 1);
    PgkmMixture mixture = {INT32_MAX, PGKM_COVARIANCE_FULL, &one, &one, &one, &one, nullptr};
    PgkmMixtureSums sums = {};
    Call call = test::problem_call(Function::em_step, problem);
    call.mixtures = &mixture;
    call.sums = &sums;
    ArenaFields sizes({1, INT32_MAX, PGKM_FLOAT32});
    EXPECT_THROW(fields(sizes, call), Error);
}

} // namespace
} // namespace pgkm::service
