// The M step, its factors, and whole fits of Gaussian mixtures.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "numeric/error.hpp"
#include "engine/mixture/factors.hpp"
#include "mixture_request.hpp"

namespace pgkm {
namespace {

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

const Poll no_poll = [] {};

constexpr PgkmCovariance all_types[] = {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG,
                                        PGKM_COVARIANCE_SPHERICAL};

// k covariances that are well away from singular.
MixtureParameters parameters(PgkmCovariance type, std::int32_t k, std::int32_t d)
{
    std::mt19937_64 random(static_cast<std::uint64_t>(type) * 100 + static_cast<std::uint64_t>(d));
    std::normal_distribution<double> normal;
    MixtureParameters made;
    made.type = type;
    made.k = k;
    made.d = d;
    made.weights.assign(at(k), 1.0 / k);
    for (std::int32_t i = 0; i < k * d; ++i)
        made.means.push_back(normal(random));
    made.covariances.assign(at(pgkm_covariance_size(type, k, d)), 0.0);
    if (type == PGKM_COVARIANCE_DIAG || type == PGKM_COVARIANCE_SPHERICAL) {
        for (double &value : made.covariances)
            value = 0.1 + std::fabs(normal(random));
        return made;
    }
    for (std::size_t start = 0; start < made.covariances.size(); start += at(d) * at(d))
        for (std::int32_t term = 0; term < 2 * d; ++term) {
            std::vector<double> x(at(d));
            for (double &value : x)
                value = normal(random);
            for (std::int32_t a = 0; a < d; ++a)
                for (std::int32_t b = 0; b < d; ++b)
                    made.covariances[start + at(a) * at(d) + at(b)] += x[at(a)] * x[at(b)];
        }
    return made;
}

// W C W' = 1 for each matrix, and the logarithms of the determinants; 300 rows are more than are dealt with at once.
TEST(MixtureFactors, InvertTheCovariances)
{
    for (const PgkmCovariance type : {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED})
        for (const std::int32_t d : {1, 2, 5, 33, 300}) {
            const MixtureParameters made = parameters(type, 3, d);
            const MixtureFactors factors = factorise(made, no_poll);
            for (std::size_t start = 0; start < factors.factors.size(); start += at(d) * at(d)) {
                const double *const w = factors.factors.data() + start, *const c = made.covariances.data() + start;
                double logarithm = 0.0;
                std::vector<double> row(at(d)); // of W C
                for (std::int32_t i = 0; i < d; ++i) {
                    logarithm += std::log(w[i * d + i]);
                    std::fill(row.begin(), row.end(), 0.0);
                    for (std::int32_t a = 0; a < d; ++a)
                        for (std::int32_t b = 0; b < d; ++b)
                            row[at(b)] += w[i * d + a] * c[a * d + b];
                    for (std::int32_t j = 0; j < d; ++j) {
                        const double product = std::inner_product(row.begin(), row.end(), w + j * d, 0.0);
                        ASSERT_NEAR(product, i == j ? 1.0 : 0.0, 1e-9) << "d " << d;
                        ASSERT_TRUE(j <= i || w[i * d + j] == 0.0);
                    }
                }
                EXPECT_NEAR(factors.log_determinants[start / (at(d) * at(d))], logarithm, 1e-12 * d);
            }
            EXPECT_EQ(factors.log_determinants.size(), 3u);
        }
}

// Factors of precisions are those of covariances: |W x| is the same.
TEST(MixtureFactors, OfPrecisions)
{
    const std::int32_t d = 300;
    const MixtureParameters made = parameters(PGKM_COVARIANCE_FULL, 2, d);
    const MixtureFactors factors = factorise(made, no_poll);
    std::vector<double> precisions(made.covariances.size());
    for (std::int32_t j = 0; j < 2; ++j)
        for (std::int32_t a = 0; a < d; ++a)
            for (std::int32_t b = 0; b < d; ++b)
                for (std::int32_t c = 0; c < d; ++c)
                    precisions[at((j * d + a) * d + b)] +=
                        factors.factors[at((j * d + c) * d + a)] * factors.factors[at((j * d + c) * d + b)];
    const MixtureFactors again = factorise(made, no_poll, precisions.data());
    for (std::size_t i = 0; i < factors.factors.size(); ++i)
        EXPECT_NEAR(again.factors[i], factors.factors[i], 1e-9);
}

TEST(MixtureFactors, SingularCovariancesAreRefused)
{
    for (const PgkmCovariance type : all_types) {
        MixtureParameters made = parameters(type, 2, 3);
        std::fill(made.covariances.begin(), made.covariances.end(), 0.0);
        EXPECT_THROW(factorise(made, no_poll), Error) << "type " << type;
    }
    MixtureParameters made = parameters(PGKM_COVARIANCE_TIED, 2, 2);
    made.covariances = {1.0, 1.0, 1.0, 1.0};
    EXPECT_THROW(factorise(made, no_poll), Error);
    made.covariances = {1e300, 0.0, 0.0, 1e-300};
    EXPECT_NO_THROW(factorise(made, no_poll));
}

struct Rows {
    std::vector<double> values;
    std::int64_t n;
    std::int32_t d;
};

Rows blobs(std::int64_t n, std::int32_t d, double offset)
{
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    Rows rows = {{}, n, d};
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int32_t f = 0; f < d; ++f)
            rows.values.push_back(offset + 8.0 * static_cast<double>((i % 3 + f) % 3) +
                                  normal(random) * (1.0 + 0.3 * f));
    return rows;
}

PgkmRequest request_of(const Rows &rows, PgkmCovariance type, std::int64_t k)
{
    return mixture_request(rows.values.data(), rows.n, rows.d, type, k);
}

// Components of equal weights and unit precisions at given means: first centroids play no part.
struct Start {
    std::vector<double> weights, means, precisions;

    Start(PgkmCovariance type, std::int32_t d, std::vector<double> at_means) : means(std::move(at_means))
    {
        const auto k = static_cast<std::int32_t>(means.size()) / d;
        weights.assign(at(k), 1.0 / k);
        precisions.assign(at(pgkm_covariance_size(type, k, d)), 1.0);
        if (type == PGKM_COVARIANCE_FULL || type == PGKM_COVARIANCE_TIED)
            for (std::size_t i = 0; i < precisions.size(); ++i)
                precisions[i] = i % at(d * d) % at(d + 1) == 0 ? 1.0 : 0.0;
    }
    void give_to(PgkmRequest &request) const
    {
        const PgkmCovariance type = request.mixture.covariance_type;
        const std::int32_t dimensions = type == PGKM_COVARIANCE_FULL ? 3 : type == PGKM_COVARIANCE_SPHERICAL ? 1 : 2;
        const auto k = static_cast<std::int32_t>(request.k);
        const std::int32_t d = request.points.d;
        request.mixture.weights_init = {weights.data(), 1, {k, 0, 0}};
        request.mixture.means_init = {means.data(), 2, {k, d, 0}};
        request.mixture.precisions_init = {precisions.data(), dimensions, {type == PGKM_COVARIANCE_TIED ? d : k, d, d}};
    }
};

TEST(Mixture, FindsTheGroups)
{
    const Rows rows = blobs(3000, 3, 0.0);
    for (const PgkmCovariance type : all_types) {
        const MixtureModel model = fit(request_of(rows, type, 3));
        EXPECT_TRUE(model.converged) << "type " << type;
        for (std::int32_t j = 0; j < 3; ++j)
            EXPECT_NEAR(model.parameters.weights[at(j)], 1.0 / 3.0, 0.01);
        for (std::int64_t i = 3; i < rows.n; ++i)
            ASSERT_EQ(model.labels[at(i)], model.labels[at(i % 3)]) << "row " << i;
        for (std::size_t i = 1; i < model.trace.size(); ++i)
            EXPECT_GE(model.trace[i], model.trace[i - 1] - 1e-6);
        EXPECT_GE(model.log_likelihood, model.trace.back() - 1e-6);
    }
}

TEST(Mixture, ThreadsDoNotChangeBits)
{
    const Rows rows = blobs(20'000, 5, 1e3);
    for (const PgkmCovariance type : all_types) {
        PgkmRequest request = request_of(rows, type, 4);
        request.settings.cpu_threads = 1;
        const MixtureModel one = fit(request);
        request.settings.cpu_threads = 3;
        const MixtureModel three = fit(request);
        EXPECT_EQ(one.parameters.means, three.parameters.means) << "type " << type;
        EXPECT_EQ(one.parameters.covariances, three.parameters.covariances);
        EXPECT_EQ(one.trace, three.trace);
        EXPECT_EQ(one.log_likelihood, three.log_likelihood);
        EXPECT_EQ(one.labels, three.labels);
    }
}

// A fit that goes on from a model is the rest of the whole fit, in the units of the model; weights and groups, too.
TEST(Mixture, GoesOnFromAModel)
{
    const Rows rows = blobs(3000, 3, 10.0);
    const std::vector<double> weights(3000, 2.5);
    for (const PgkmCovariance type : all_types)
        for (const bool standardize : {false, true}) {
            PgkmRequest request = request_of(rows, type, 4);
            request.points.weights = standardize ? weights.data() : nullptr;
            request.mixture.standardize = standardize ? 1 : 0;
            request.mixture.tol = 0.0;
            request.mixture.max_iter = 7;
            const MixtureModel whole = fit(request);
            request.mixture.max_iter = 3;
            const MixtureModel begun = fit(request);
            const PgkmGiven none = {nullptr, 0, {}};
            const auto units = [&](const std::vector<double> &values) {
                return standardize ? PgkmGiven{values.data(), 1, {3, 0, 0}} : none;
            };
            PgkmGiven covariances = {begun.parameters.covariances.data(), 0, {}};
            covariances.dimensions = pgkm_covariance_shape(type, 4, 3, covariances.extent);
            request.mixture.init_model = {{begun.parameters.means.data(), 2, {4, 3, 0}},
                                          units(begun.units.center),
                                          units(begun.units.scale),
                                          PGKM_L2,
                                          {begun.parameters.weights.data(), 1, {4, 0, 0}},
                                          covariances,
                                          type};
            request.mixture.max_iter = 4;
            request.mixture.n_init = 3;
            const MixtureModel rest = fit(request);
            EXPECT_EQ(rest.parameters.weights, whole.parameters.weights) << "type " << type;
            EXPECT_EQ(rest.parameters.means, whole.parameters.means);
            EXPECT_EQ(rest.parameters.covariances, whole.parameters.covariances);
            EXPECT_EQ(rest.log_likelihood, whole.log_likelihood);
            EXPECT_TRUE(std::equal(rest.trace.begin(), rest.trace.end(), whole.trace.begin() + 3, whole.trace.end()));
            EXPECT_EQ(rest.labels, whole.labels);
            request.mixture.standardize = standardize ? 0 : 1;
            EXPECT_THROW(check_mixture_options(request.mixture, 4, 3), Error);
        }
}

// Groups of one request, which converge at different times: each as by itself.
TEST(Mixture, GroupsAreAsOneByOne)
{
    const Rows rows = blobs(3000, 3, 10.0);
    const std::int64_t sizes[] = {1, 7, 300, 1500, 1192}, k[] = {3, 2, 1, 4, 3};
    for (const PgkmCovariance type : all_types) {
        PgkmRequest request = request_of(rows, type, 1);
        std::vector<PgkmGroup> groups;
        const double *place = rows.values.data();
        for (std::size_t g = 0; g < 5; place += 3 * sizes[g++])
            groups.push_back({place, nullptr, sizes[g], k[g]});
        request.mixture.n_init = 2;
        request.settings.cpu_threads = 3;
        request.groups = groups.data();
        request.n_groups = 5;
        const std::vector<MixtureModel> together = fit_all(request);
        ASSERT_EQ(together.size(), 5u);
        for (std::size_t g = 0; g < 5; ++g) {
            PgkmRequest alone = request_of(rows, type, k[g]);
            alone.points.values = groups[g].values;
            alone.points.n = groups[g].n;
            alone.mixture.n_init = 2;
            const MixtureModel model = fit(alone);
            EXPECT_EQ(together[g].parameters.means, model.parameters.means) << "type " << type << ", " << g;
            EXPECT_EQ(together[g].parameters.covariances, model.parameters.covariances);
            EXPECT_EQ(together[g].trace, model.trace);
            EXPECT_EQ(together[g].labels, model.labels);
            EXPECT_EQ(together[g].converged, model.converged);
        }
    }
}

// From the first rows: an offset changes the order in which rows are drawn.
TEST(Mixture, WideOffsets)
{
    const Rows near = blobs(3000, 3, 0.0), far = blobs(3000, 3, 1e6);
    for (const PgkmCovariance type : all_types) {
        const auto from_first_rows = [&](const Rows &rows) {
            const Start start(type, 3, {rows.values.begin(), rows.values.begin() + 9});
            PgkmRequest request = request_of(rows, type, 3);
            request.mixture.tol = 0.0;
            request.mixture.max_iter = 5;
            start.give_to(request);
            return fit(request);
        };
        const MixtureModel at_origin = from_first_rows(near), away = from_first_rows(far);
        ASSERT_EQ(at_origin.parameters.covariances.size(), away.parameters.covariances.size());
        for (std::size_t i = 0; i < away.parameters.covariances.size(); ++i)
            EXPECT_NEAR(at_origin.parameters.covariances[i], away.parameters.covariances[i], 1e-7) << "type " << type;
    }
}

// The rows of the second component leave it at once.
TEST(Mixture, StarvedComponent)
{
    const Rows rows = blobs(300, 2, 0.0);
    for (const PgkmCovariance type : all_types) {
        const Start start(type, 2, {8.0, 8.0, 1e7, 1e7});
        PgkmRequest request = request_of(rows, type, 2);
        start.give_to(request);
        const MixtureModel model = fit(request);
        EXPECT_LT(model.parameters.weights[1], 1e-15) << "type " << type;
        EXPECT_EQ(model.parameters.means[2], 1e7);
        EXPECT_TRUE(std::isfinite(model.log_likelihood));
        for (const double value : model.parameters.covariances)
            EXPECT_TRUE(std::isfinite(value));
    }
}

// A component without rows, however far away, leaves the tied covariance to the others.
TEST(Mixture, StarvedComponentFarAway)
{
    MixtureParameters made;
    made.type = PGKM_COVARIANCE_TIED;
    made.k = 2;
    made.d = 1;
    made.weights = {0.5, 0.5};
    made.means = {3.0, 1e12};
    MixtureSums sums(made.type, 2, 1);
    sums.masses = {4.0, 0.0};
    sums.first = {4.0, 0.0};
    maximise(made, sums, {{4.0}, {2.0}}, 0.5, no_poll);
    EXPECT_NEAR(made.means[0], 4.0, 1e-12);
    EXPECT_EQ(made.means[1], 1e12);
    EXPECT_NEAR(made.covariances[0], 2.5, 1e-12);
}

TEST(MixtureFactors, AsTheApiHasThem)
{
    const double covariance = 4.0;
    double factor = 0.0, determinant = 0.0;
    PgkmError error;
    EXPECT_EQ(pgkm_mixture_factors(PGKM_COVARIANCE_FULL, 1, 1, &covariance, &factor, &determinant, nullptr, &error),
              PGKM_OK);
    EXPECT_EQ(factor, 0.5);
    const PgkmInterrupted at_once = [] { return 1; };
    EXPECT_EQ(pgkm_mixture_factors(PGKM_COVARIANCE_FULL, 1, 1, &covariance, &factor, &determinant, at_once, &error),
              PGKM_CANCELLED);
}

TEST(Mixture, RowsAsSingleOnes)
{
    const Rows rows = blobs(500, 4, 10.0);
    for (const PgkmCovariance type : all_types) {
        const MixtureModel model = fit(request_of(rows, type, 3));
        const MixtureFactors factors = factorise(model.parameters, no_poll);
        const PgkmMixture mixture = factors.view(model.parameters);
        double total = 0.0;
        for (std::int64_t i = 0; i < rows.n; ++i) {
            double posterior[3];
            std::int32_t label;
            total += pgkm_mixture_row(&mixture, rows.d, rows.values.data() + i * rows.d, posterior, &label);
            EXPECT_EQ(label, model.labels[at(i)]);
            EXPECT_NEAR(posterior[0] + posterior[1] + posterior[2], 1.0, 1e-12);
        }
        EXPECT_NEAR(total, model.log_likelihood, 1e-9 * std::fabs(total)) << "type " << type;
    }
}

} // namespace
} // namespace pgkm
