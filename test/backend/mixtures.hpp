// mixtures.hpp - mixtures for the rows of a case, what em_step() makes of them, and how near it must come.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>

#include "compare.hpp"
#include "parameters.hpp"
#include "session.hpp"

namespace conformance {

inline constexpr PgkmCovariance all_types[] = {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG,
                                               PGKM_COVARIANCE_SPHERICAL};

// A mixture for one group of a case: means are rows of it, W is next to diagonal with the scale of the
// features.
struct Mixture {
    Mixture(const Case &data, std::size_t group, PgkmCovariance type, const PgkmSummary &summary,
            std::int32_t most_k = 20)
        : k(std::min<std::int32_t>(data.groups[group].k, most_k)), d(data.d)
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

    // The view again, after a vector has moved the mixture.
    PgkmMixture rebound(PgkmCovariance type) const
    {
        return {k, type, log_weights.data(), means.data(), factors.data(), log_determinants.data(), view.labels};
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
        if (mixture.labels != nullptr || labels.empty())
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

// What the reference makes of a mixture and the rows of a group, computed once for all subjects: it is
// slow. `mixture` is the same at every call for one group and type, and its labels are if there are any.
inline const Sums &expected_sums(const Case &data, std::size_t group, const Mixture &mixture, PgkmCovariance type)
{
    static std::map<std::tuple<std::string, std::size_t, PgkmCovariance, bool>, std::unique_ptr<const Sums>> all;
    std::unique_ptr<const Sums> &known = all[{data.name, group, type, mixture.view.labels != nullptr}];
    if (known == nullptr) {
        Session session(reference_subject(), data.points());
        auto made = std::make_unique<Sums>(data, group, mixture, type);
        if (made->take(session, mixture.rebound(type)) != PGKM_OK)
            throw std::runtime_error(std::string("the reference failed: ") + session.error.text);
        known = std::move(made);
    }
    return *known;
}

// The CPU works in float64 throughout; a device may take float32 exponentials for float32 rows.
inline double tolerance_of(const Subject &subject, PgkmElement element)
{
    const bool cpu = std::string(subject.table->name) == "cpu";
    return element == PGKM_FLOAT32 && !cpu ? 1e-6 : 1e-10;
}

// Sums against their size: that of their rows' parts.
inline void expect_near(const Sums &expected, const Sums &actual, PgkmCovariance type, const PgkmSummary &summary,
                        double tolerance)
{
    double n = 0.0; // what the rows count together
    for (const double mass : expected.masses)
        n += mass;
    const std::size_t d = expected.first.size() / expected.masses.size();
    const auto range = [&](std::size_t f) { return summary.max[f] - summary.min[f]; };
    constexpr double least = std::numeric_limits<double>::min();
    EXPECT_NEAR(actual.view.log_likelihood, expected.view.log_likelihood,
                tolerance * (std::fabs(expected.view.log_likelihood) + n));
    for (std::size_t j = 0; j < expected.masses.size(); ++j) {
        ASSERT_NEAR(actual.masses[j], expected.masses[j], tolerance * n) << "component " << j;
        const std::size_t size = expected.second.size() / expected.masses.size();
        if (type == PGKM_COVARIANCE_SPHERICAL) {
            double all = 0.0, of_expected = 0.0, ranges = 0.0;
            for (std::size_t f = 0; f < d; ++f) {
                all += actual.second[j * d + f];
                of_expected += expected.second[j * d + f];
                ranges += range(f) * range(f);
            }
            ASSERT_NEAR(all, of_expected, tolerance * n * ranges + least) << "component " << j;
        }
        for (std::size_t a = 0, i = 0; a < d; ++a) {
            ASSERT_NEAR(actual.first[j * d + a], expected.first[j * d + a], tolerance * n * range(a))
                << "component " << j << ", feature " << a;
            if (size == 0 || type == PGKM_COVARIANCE_SPHERICAL)
                continue;
            for (std::size_t b = type == PGKM_COVARIANCE_FULL ? 0 : a; b <= a; ++b, ++i)
                ASSERT_NEAR(actual.second[j * size + i], expected.second[j * size + i],
                            tolerance * n * range(a) * range(b) + least)
                    << "component " << j << ", features " << a << ", " << b;
        }
    }
}

} // namespace conformance
