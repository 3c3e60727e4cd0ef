// Mixtures of rows that lack values, beside EM written out with inverses of small matrices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "engine/mixture/factors.hpp"
#include "mixture_request.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr PgkmCovariance types[] = {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_DIAG};

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

struct Rows {
    std::vector<double> values, weights;
    std::int64_t n;
    std::int32_t d;
};

// Rows of two groups with features that depend on one another, of whose values a share is missing, but one in each.
Rows rows_with_gaps(std::int64_t n, std::int32_t d, double share)
{
    std::mt19937_64 random(11);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    Rows rows = {{}, {}, n, d};
    for (std::int64_t i = 0; i < n; ++i) {
        const double common = normal(random);
        const auto kept = static_cast<std::int32_t>(uniform(random) * d);
        for (std::int32_t f = 0; f < d; ++f) {
            const double value = 5.0 * static_cast<double>(i % 2) * (f % 2 == 0 ? 1.0 : -1.0) + common + normal(random);
            rows.values.push_back(f != kept && uniform(random) < share ? nan : value);
        }
        rows.weights.push_back(1.0 + static_cast<double>(i % 3));
    }
    return rows;
}

PgkmRequest request_of(const Rows &rows, PgkmCovariance type, std::int64_t k)
{
    PgkmRequest request = mixture_request(rows.values.data(), rows.n, rows.d, type, k);
    request.may_lack_values = 1;
    return request;
}

void go_on_from(PgkmRequest &request, const MixtureModel &model)
{
    const MixtureParameters &from = model.parameters;
    PgkmGiven covariances = {from.covariances.data(), 0, {}};
    covariances.dimensions = pgkm_covariance_shape(from.type, from.k, from.d, covariances.extent);
    request.mixture.init_model = {};
    request.mixture.init_model.centroids = {from.means.data(), 2, {from.k, from.d, 0}};
    request.mixture.init_model.weights = {from.weights.data(), 1, {from.k, 0, 0}};
    request.mixture.init_model.covariances = covariances;
    request.mixture.init_model.covariance_type = from.type;
}

// The covariance matrix of a component.
Matrix covariance_of(const MixtureParameters &parameters, std::int64_t j)
{
    const std::int64_t d = parameters.d;
    if (parameters.type == PGKM_COVARIANCE_DIAG)
        return Eigen::Map<const Vector>(parameters.covariances.data() + j * d, d).asDiagonal();
    return Eigen::Map<const Matrix>(parameters.covariances.data() + j * d * d, d, d);
}

// A row under a component: its density, what is expected of it, and with which covariance.
struct Expected {
    double density;
    Vector row;
    Matrix covariance;
};

Expected expect(const Vector &row, const Vector &mean, const Matrix &covariance)
{
    std::vector<int> observed, missing;
    for (int f = 0; f < row.size(); ++f)
        (std::isnan(row[f]) ? missing : observed).push_back(f);
    const Matrix inverse = Matrix(covariance(observed, observed)).inverse();
    const Matrix slope = covariance(missing, observed) * inverse;
    const Vector apart = row(observed) - mean(observed);
    const double scale = std::pow(2.0 * std::numbers::pi, static_cast<double>(observed.size())) *
                         Matrix(covariance(observed, observed)).determinant();
    Expected found = {std::exp(-0.5 * apart.dot(inverse * apart)) / std::sqrt(scale), row,
                      Matrix::Zero(row.size(), row.size())};
    found.row(missing) = mean(missing) + slope * apart;
    found.covariance(missing, missing) = covariance(missing, missing) - slope * covariance(observed, missing);
    return found;
}

// An iteration, row by row. Returns the log-likelihood before it.
double iterate(const Rows &rows, MixtureParameters &parameters, double reg_covar)
{
    const std::int64_t k = parameters.k, d = parameters.d;
    std::vector<double> masses(at(k));
    std::vector<Vector> first(at(k), Vector::Zero(d));
    std::vector<Matrix> second(at(k), Matrix::Zero(d, d));
    double log_likelihood = 0.0, all = 0.0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        std::vector<Expected> expected;
        double density = 0.0;
        for (std::int64_t j = 0; j < k; ++j) {
            expected.push_back(expect(Eigen::Map<const Vector>(rows.values.data() + i * d, d),
                                      Eigen::Map<const Vector>(parameters.means.data() + j * d, d),
                                      covariance_of(parameters, j)));
            density += expected[at(j)].density *= parameters.weights[at(j)];
        }
        log_likelihood += rows.weights[at(i)] * std::log(density);
        for (std::int64_t j = 0; j < k; ++j) {
            const Expected &row = expected[at(j)];
            const double share = rows.weights[at(i)] * row.density / density;
            masses[at(j)] += share;
            all += share;
            first[at(j)] += share * row.row;
            second[at(j)] += share * (row.row * row.row.transpose() + row.covariance);
        }
    }
    for (std::int64_t j = 0; j < k; ++j) {
        const Vector mean = first[at(j)] / masses[at(j)];
        const Matrix covariance = second[at(j)] / masses[at(j)] - mean * mean.transpose();
        parameters.weights[at(j)] = masses[at(j)] / all;
        for (std::int64_t a = 0; a < d; ++a) {
            parameters.means[at(j * d + a)] = mean[a];
            if (parameters.type == PGKM_COVARIANCE_DIAG)
                parameters.covariances[at(j * d + a)] = covariance(a, a) + reg_covar;
            for (std::int64_t b = 0; parameters.type == PGKM_COVARIANCE_FULL && b < d; ++b)
                parameters.covariances[at((j * d + a) * d + b)] = covariance(a, b) + (a == b ? reg_covar : 0.0);
        }
    }
    return log_likelihood;
}

template <typename Values>
void expect_near(const Values &found, const Values &wanted, double tolerance)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], wanted[i], tolerance) << i;
}

TEST(MissingMixture, IterationsAreThoseOfThePaper)
{
    for (const PgkmCovariance type : types)
        for (const double share : {0.05, 0.4, 1.0}) { // 1: a single value in each row
            const Rows rows = rows_with_gaps(300, 4, share);
            PgkmRequest request = request_of(rows, type, 2);
            request.points.weights = rows.weights.data();
            request.mixture.tol = 0.0;
            request.mixture.max_iter = 2;
            const MixtureModel begun = fit(request);
            MixtureParameters wanted = begun.parameters;
            std::vector<double> trace;
            for (int iteration = 0; iteration < 4; ++iteration)
                trace.push_back(iterate(rows, wanted, request.mixture.reg_covar));
            go_on_from(request, begun);
            request.mixture.max_iter = 4;
            const MixtureModel found = fit(request);
            expect_near(found.parameters.weights, wanted.weights, 1e-9);
            expect_near(found.parameters.means, wanted.means, 1e-8);
            expect_near(found.parameters.covariances, wanted.covariances, 1e-8);
            expect_near(found.trace, trace, 1e-7);
            EXPECT_EQ(found.mass, 599.0 + 1.0);
        }
}

// The likelihood of what is observed never falls. With reg_covar 0 there is nothing beside EM.
TEST(MissingMixture, LikelihoodNeverFalls)
{
    const Rows rows = rows_with_gaps(1000, 5, 0.3);
    for (const PgkmCovariance type : types) {
        PgkmRequest request = request_of(rows, type, 3);
        request.mixture.reg_covar = 0.0;
        request.mixture.tol = 0.0;
        request.mixture.max_iter = 50;
        const MixtureModel model = fit(request);
        ASSERT_EQ(model.trace.size(), 50u);
        for (std::size_t i = 1; i < model.trace.size(); ++i)
            EXPECT_GE(model.trace[i], model.trace[i - 1] - 1e-8) << "type " << type << ", " << i;
        EXPECT_GE(model.log_likelihood, model.trace.back() - 1e-8);
    }
}

TEST(MissingMixture, CompleteRowsAreAsEver)
{
    const Rows rows = rows_with_gaps(2000, 4, 0.0);
    for (const PgkmCovariance type : types) {
        PgkmRequest request = request_of(rows, type, 3);
        const MixtureModel may_lack = fit(request);
        request.may_lack_values = 0;
        const MixtureModel complete = fit(request);
        EXPECT_EQ(may_lack.parameters.means, complete.parameters.means);
        EXPECT_EQ(may_lack.parameters.covariances, complete.parameters.covariances);
        EXPECT_EQ(may_lack.trace, complete.trace);
        EXPECT_EQ(may_lack.labels, complete.labels);
    }
}

TEST(MissingMixture, ThreadsDoNotChangeBits)
{
    const Rows rows = rows_with_gaps(20'000, 5, 0.2);
    for (const PgkmCovariance type : types) {
        PgkmRequest request = request_of(rows, type, 3);
        request.points.weights = rows.weights.data();
        request.settings.cpu_threads = 1;
        const MixtureModel one = fit(request);
        request.settings.cpu_threads = 3;
        const MixtureModel three = fit(request);
        EXPECT_EQ(one.parameters.means, three.parameters.means) << "type " << type;
        EXPECT_EQ(one.parameters.covariances, three.parameters.covariances);
        EXPECT_EQ(one.log_likelihood, three.log_likelihood);
        EXPECT_EQ(one.labels, three.labels);
    }
}

// Labels and likelihoods are those of the rows as they came, of float32, too, and in the units of the data.
TEST(MissingMixture, RowsAsSingleOnes)
{
    const Rows rows = rows_with_gaps(500, 4, 0.4);
    const std::vector<float> single(rows.values.begin(), rows.values.end());
    for (const PgkmCovariance type : types)
        for (const bool standardize : {false, true}) {
            PgkmRequest request = request_of(rows, type, 2);
            request.points.values = single.data();
            request.points.element = PGKM_FLOAT32;
            request.mixture.standardize = standardize ? 1 : 0;
            const MixtureModel model = fit(request);
            const MixtureFactors factors = factorise(model.parameters, [] {});
            const PgkmMixture mixture = factors.view(model.parameters);
            double total = 0.0;
            for (std::int64_t i = 0; i < rows.n; ++i) {
                double row[4], posterior[2], log_density;
                std::int32_t label;
                PgkmError error;
                std::copy_n(single.data() + i * 4, 4, row);
                for (std::size_t f = 0; standardize && f < 4; ++f)
                    if (!std::isnan(row[f])) {
                        row[f] = static_cast<float>((row[f] - model.units.center[f]) / model.units.scale[f]);
                        total -= std::log(model.units.scale[f]);
                    }
                ASSERT_EQ(pgkm_mixture_incomplete_row(&mixture, model.parameters.covariances.data(), 4, row, posterior,
                                                      &label, &log_density, &error),
                          PGKM_OK);
                EXPECT_EQ(label, model.labels[at(i)]) << i;
                EXPECT_NEAR(posterior[0] + posterior[1], 1.0, 1e-12);
                total += log_density;
            }
            EXPECT_NEAR(total, model.log_likelihood, 1e-9 * std::fabs(total)) << "type " << type;
        }
}

TEST(MissingMixture, WhatCannotBe)
{
    Rows rows = rows_with_gaps(50, 3, 0.2);
    PgkmError error = {};
    for (const PgkmCovariance type : {PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_SPHERICAL}) {
        const PgkmRequest request = request_of(rows, type, 2);
        const PgkmGroup group = {rows.values.data(), nullptr, rows.n, 2};
        EXPECT_EQ(pgkm_request_accepts(&request, &group, &error), PGKM_UNSUPPORTED);
    }
    for (std::int64_t i = 0; i < rows.n; ++i)
        rows.values[at(i * 3 + 1)] = nan;
    try {
        fit(request_of(rows, PGKM_COVARIANCE_FULL, 2));
        FAIL();
    } catch (const Error &refused) {
        EXPECT_EQ(refused.status(), PGKM_INVALID);
        EXPECT_STREQ(refused.what(), "feature 2 has no value in any row");
    }
}

} // namespace
} // namespace pgkm
