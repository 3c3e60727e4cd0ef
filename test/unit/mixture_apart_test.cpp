// Mixtures of components from 1 to 1e9 times their width apart, beside EM in long double, of two passes over the rows.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_backend.hpp"
#include "engine/mixture/fitter.hpp"

namespace pgkm {
namespace {

using Real = long double;

constexpr int k = 3, d = 2, n = 600;
constexpr double reg_covar = 1e-6;

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

// Steps of 2^-8, so that rows have the same deviations at any distance.
struct Rows {
    explicit Rows(double ratio, bool weighted) : ratio(ratio)
    {
        std::mt19937_64 random(3);
        std::normal_distribution<double> normal(0.0, 256.0);
        for (int i = 0; i < n; ++i) {
            const double x = std::rint(normal(random)) / 256.0, y = std::rint(normal(random)) / 256.0;
            values.push_back(centre(i % k, 0) + x);
            values.push_back(centre(i % k, 1) + std::rint(128.0 * x) / 256.0 + (1.0 + i % k) * y);
            if (weighted)
                weights.push_back(0.5 + i % 7);
        }
    }
    double centre(int j, int f) const { return std::rint(f == 0 ? j * ratio : j * j * ratio / 2.0); }
    Real weight(int i) const { return weights.empty() ? 1.0 : weights[at(i)]; }
    Real operator()(int i, int f) const { return values[at(i * d + f)]; }

    double ratio;
    std::vector<double> values, weights;
};

struct Reference {
    Real weight[k], mean[k][d], covariance[k][d][d];

    // First parameters: equal weights, unit covariances.
    explicit Reference(const Rows &rows)
    {
        for (int j = 0; j < k; ++j) {
            weight[j] = Real{1} / k;
            for (int f = 0; f < d; ++f) {
                mean[j][f] = rows.centre(j, f);
                for (int g = 0; g < d; ++g)
                    covariance[j][f][g] = f == g ? 1 : 0;
            }
        }
    }

    Real log_density(const Rows &rows, int i, int j) const
    {
        const auto &c = covariance[j];
        const Real x = rows(i, 0) - mean[j][0], y = rows(i, 1) - mean[j][1];
        const Real determinant = c[0][0] * c[1][1] - c[0][1] * c[1][0];
        const Real square = (c[1][1] * x * x - 2 * c[0][1] * x * y + c[0][0] * y * y) / determinant;
        return std::log(weight[j]) - std::log(2 * std::acos(Real{-1})) - std::log(determinant) / 2 - square / 2;
    }

    // Responsibilities, times the rows' weights; returns the log-likelihood.
    Real expect(const Rows &rows, std::vector<Real> &shares) const
    {
        Real likelihood = 0;
        shares.assign(at(n * k), 0);
        for (int i = 0; i < n; ++i) {
            Real *const share = &shares[at(i * k)], largest = -INFINITY, sum = 0;
            for (int j = 0; j < k; ++j)
                largest = std::max(largest, share[j] = log_density(rows, i, j));
            for (int j = 0; j < k; ++j)
                sum += share[j] = std::exp(share[j] - largest);
            for (int j = 0; j < k; ++j)
                share[j] *= rows.weight(i) / sum;
            likelihood += rows.weight(i) * (largest + std::log(sum));
        }
        return likelihood;
    }

    void maximise(const Rows &rows, const std::vector<Real> &shares, PgkmCovariance type)
    {
        Real all = 0, mass[k] = {}, tied[d][d] = {};
        for (int j = 0; j < k; ++j) {
            Real sum[d] = {}, cross[d][d] = {};
            for (int i = 0; i < n; ++i) {
                mass[j] += shares[at(i * k + j)];
                for (int f = 0; f < d; ++f)
                    sum[f] += shares[at(i * k + j)] * (rows(i, f) - rows.centre(j, f));
            }
            for (int f = 0; f < d; ++f)
                mean[j][f] = rows.centre(j, f) + sum[f] / mass[j];
            for (int i = 0; i < n; ++i)
                for (int f = 0; f < d; ++f)
                    for (int g = 0; g < d; ++g)
                        cross[f][g] += shares[at(i * k + j)] * (rows(i, f) - mean[j][f]) * (rows(i, g) - mean[j][g]);
            for (int f = 0; f < d; ++f)
                for (int g = 0; g < d; ++g) {
                    tied[f][g] += cross[f][g];
                    covariance[j][f][g] = cross[f][g] / mass[j];
                }
            all += mass[j];
        }
        for (int j = 0; j < k; ++j) {
            auto &c = covariance[j];
            weight[j] = mass[j] / all;
            if (type == PGKM_COVARIANCE_SPHERICAL)
                c[0][0] = c[1][1] = (c[0][0] + c[1][1]) / 2;
            if (type == PGKM_COVARIANCE_SPHERICAL || type == PGKM_COVARIANCE_DIAG)
                c[0][1] = c[1][0] = 0;
            for (int f = 0; f < d; ++f) {
                for (int g = 0; g < d && type == PGKM_COVARIANCE_TIED; ++g)
                    c[f][g] = tied[f][g] / all;
                c[f][f] += reg_covar;
            }
        }
    }
};

PgkmRequest request_of(const Rows &rows, PgkmCovariance type)
{
    PgkmRequest request = {};
    request.algorithm = PGKM_MIXTURE;
    request.points = {rows.values.data(), PGKM_FLOAT64, n, d, rows.weights.empty() ? nullptr : rows.weights.data()};
    request.k = k;
    pgkm_mixture_options_default(&request.mixture);
    request.mixture.covariance_type = type;
    request.mixture.reg_covar = reg_covar;
    request.mixture.tol = 0.0;
    request.mixture.max_iter = 3;
    request.settings.backend = PGKM_BACKEND_CPU;
    request.settings.device = -1;
    request.settings.cpu_threads = 1;
    return request;
}

MixtureModel fit(const PgkmRequest &request)
{
    Monitor monitor;
    Workplace place({cpu_backend(), -1, 0}, open_options(request, 1, monitor.host()));
    return std::move(fit_mixtures(request, place, monitor)[0]);
}

void expect_same(const MixtureParameters &actual, const Reference &expected)
{
    std::vector<bool> taken(k);
    for (int j = 0; j < k; ++j) {
        int own = 0; // components come in any order
        for (int i = 1; i < k; ++i)
            if (std::fabs(actual.means[at(i * d)] - expected.mean[j][0]) <
                std::fabs(actual.means[at(own * d)] - expected.mean[j][0]))
                own = i;
        EXPECT_FALSE(taken[at(own)]);
        taken[at(own)] = true;
        EXPECT_NEAR(actual.weights[at(own)], static_cast<double>(expected.weight[j]), 1e-9);
        for (int f = 0; f < d; ++f) {
            EXPECT_NEAR(static_cast<double>(actual.means[at(own * d + f)] - expected.mean[j][f]), 0.0,
                        1e-9 + 1e-15 * std::fabs(actual.means[at(own * d + f)]));
            for (int g = 0; g < d; ++g) {
                const bool diagonal = actual.type == PGKM_COVARIANCE_DIAG, full = actual.type == PGKM_COVARIANCE_FULL;
                if (f != g && !full && actual.type != PGKM_COVARIANCE_TIED)
                    continue;
                const int place = full                                  ? (own * d + f) * d + g
                                  : diagonal                            ? own * d + f
                                  : actual.type == PGKM_COVARIANCE_TIED ? f * d + g
                                                                        : own;
                EXPECT_NEAR(actual.covariances[at(place)], static_cast<double>(expected.covariance[j][f][g]), 2e-9)
                    << f << ", " << g;
            }
        }
    }
}

class MixtureApart : public testing::TestWithParam<PgkmCovariance> {};

TEST_P(MixtureApart, FromGivenParameters)
{
    for (const bool weighted : {false, true})
        for (double ratio = 1.0; ratio <= 1e9; ratio *= 10.0) {
            SCOPED_TRACE("ratio " + std::to_string(ratio) + (weighted ? ", weights" : ""));
            const Rows rows(ratio, weighted);
            PgkmRequest request = request_of(rows, GetParam());
            Reference expected(rows);
            std::vector<double> weights(k, 1.0 / k), means, precisions(at(pgkm_covariance_size(GetParam(), k, d)), 1.0);
            for (int i = 0; i < k * d; ++i)
                means.push_back(rows.centre(i / d, i % d));
            const bool tied = GetParam() == PGKM_COVARIANCE_TIED, full = GetParam() == PGKM_COVARIANCE_FULL;
            for (std::size_t i = 0; (tied || full) && i < precisions.size(); ++i)
                precisions[i] = i % (d * d) % (d + 1) == 0 ? 1.0 : 0.0;
            request.mixture.weights_init = {weights.data(), 1, {k, 0, 0}};
            request.mixture.means_init = {means.data(), 2, {k, d, 0}};
            request.mixture.precisions_init = {precisions.data(),
                                               full                                      ? 3
                                               : GetParam() == PGKM_COVARIANCE_SPHERICAL ? 1
                                                                                         : 2,
                                               {tied ? d : k, d, d}};
            const MixtureModel model = fit(request);
            std::vector<Real> shares;
            for (const double likelihood : model.trace) {
                const Real found = expected.expect(rows, shares);
                EXPECT_NEAR(likelihood, static_cast<double>(found), 1e-9 * std::fabs(static_cast<double>(found)));
                expected.maximise(rows, shares, GetParam());
            }
            expect_same(model.parameters, expected);
        }
}

// k-means finds the clusters, whose rows stay with them.
TEST_P(MixtureApart, FromClusters)
{
    for (const bool weighted : {false, true})
        for (double ratio = 1e3; ratio <= 1e9; ratio *= 10.0) {
            SCOPED_TRACE("ratio " + std::to_string(ratio) + (weighted ? ", weights" : ""));
            const Rows rows(ratio, weighted);
            Reference expected(rows);
            std::vector<Real> shares(at(n * k));
            for (int i = 0; i < n; ++i)
                shares[at(i * k + i % k)] = rows.weight(i);
            expected.maximise(rows, shares, GetParam());
            expect_same(fit(request_of(rows, GetParam())).parameters, expected);
        }
}

// Sums of each component take more memory than those of all.
TEST(MixtureApartMemory, IsRefusedByItsLimit)
{
    constexpr int features = 40, components = 20;
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> values;
    for (int i = 0; i < n * features; ++i)
        values.push_back(i / features % components * 1e6 + normal(random));
    PgkmRequest request = request_of(Rows(1.0, false), PGKM_COVARIANCE_TIED);
    request.points = {values.data(), PGKM_FLOAT64, n, features, nullptr};
    request.k = components;
    EXPECT_NO_THROW(fit(request));
    PgkmRequest full = request;
    full.mixture.covariance_type = PGKM_COVARIANCE_FULL;
    request.settings.memory_limit = estimate_of(mixtures, full) - 1;
    ASSERT_LT(estimate_of(mixtures, request), request.settings.memory_limit);
    try {
        fit(request);
        FAIL();
    } catch (const Error &error) {
        EXPECT_EQ(error.status(), PGKM_LIMIT) << error.what();
    }
}

INSTANTIATE_TEST_SUITE_P(All, MixtureApart,
                         testing::Values(PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG,
                                         PGKM_COVARIANCE_SPHERICAL),
                         [](const testing::TestParamInfo<PgkmCovariance> &info) {
                             return std::string(pgkm_covariance_name(info.param));
                         });

} // namespace
} // namespace pgkm
