// refine.cpp - the definition of option refine (refine.hpp): rounds of splits and joins, kept where the inertia falls.
#include "reference/refine.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/update.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "numeric/philox.hpp"
#include "reference/reference.hpp"

namespace pgkm {
namespace {

template <typename T>
using Rows = std::vector<std::vector<T>>;

void require_ok(PgkmStatus status, const PgkmError &error)
{
    if (status != PGKM_OK)
        throw Error(status, error.text);
}

// Clusters as an assignment finds them.
template <typename T>
struct Clusters {
    Rows<T> centroids;
    std::vector<double> within, masses; // masses: shares of all
    std::vector<std::int64_t> sizes;
    double inertia = 0.0;
};

template <typename T>
class Refinement {
  public:
    Refinement(PgkmData *data, const PgkmPoints &points, const PgkmSummary &summary, PgkmProblem &problem,
               const PgkmSeedParams &seed, const PgkmFitParams &params)
        : data_(data), points_(points), summary_(summary), problem_(problem), seed_(seed), params_(params), d_(points.d)
    {
    }

    void run()
    {
        const std::int32_t k = problem_.k;
        if (k == 1 || k >= problem_.n_rows)
            return;
        Rows<T> given;
        for (std::int32_t j = 0; j < k; ++j) {
            const T *from = static_cast<const T *>(problem_.centroids) + std::int64_t{j} * d_;
            given.emplace_back(from, from + d_);
        }
        Clusters<T> best = measured(given);
        bool improved = false;
        std::int32_t splits = (k + 7) / 8;
        for (std::uint32_t round = 0; round < 100; ++round) {
            Rows<T> trial = split(best, splits, round);
            if (at(k) == trial.size())
                break;
            iterate(trial, 3);
            trial = joined(measured(trial), at(k));
            iterate(trial, 5);
            const Clusters<T> found = measured(trial);
            const double before = best.inertia;
            if (found.inertia < before) {
                best = found;
                improved = true;
            }
            if (!(best.inertia < before * (1.0 - 1e-3)))
                splits /= 2;
        }
        if (!improved)
            return;
        const PgkmProblem ended = iterate(best.centroids, params_.max_iter);
        problem_.converged = ended.converged;
        problem_.shift = ended.shift;
        T *to = static_cast<T *>(problem_.centroids);
        for (const std::vector<T> &centroid : best.centroids)
            to = std::copy(centroid.begin(), centroid.end(), to);
    }

  private:
    static std::vector<T> flat(const Rows<T> &centroids)
    {
        std::vector<T> values;
        for (const std::vector<T> &centroid : centroids)
            values.insert(values.end(), centroid.begin(), centroid.end());
        return values;
    }

    PgkmProblem problem_of(std::vector<T> &values) const
    {
        PgkmProblem problem = problem_;
        problem.centroids = values.data();
        problem.k = static_cast<std::int32_t>(values.size()) / d_;
        return problem;
    }

    PgkmProblem iterate(Rows<T> &centroids, std::int32_t most)
    {
        std::vector<T> values = flat(centroids);
        PgkmProblem problem = problem_of(values);
        const PgkmFitParams params = {params_.metric, std::min(most, params_.max_iter)};
        PgkmError error = {};
        require_ok(reference_backend()->fit(data_, &problem, 1, &params, &error), error);
        for (std::size_t j = 0; j < centroids.size(); ++j)
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(j) * d_, d_, centroids[j].begin());
        problem_.n_iter += problem.n_iter;
        return problem;
    }

    // No squared distance times a weight is larger.
    double bound(const Rows<T> &centroids) const
    {
        double sum = 0.0;
        for (std::size_t f = 0; f < at(d_); ++f) {
            double low = summary_.min[f], high = summary_.max[f];
            for (const std::vector<T> &centroid : centroids) {
                low = std::min(low, static_cast<double>(centroid[f]));
                high = std::max(high, static_cast<double>(centroid[f]));
            }
            sum += (high - low) * (high - low);
        }
        return sum * (summary_.max_weight * (1.0 + 0x1p-20));
    }

    Clusters<T> measured(const Rows<T> &centroids) const
    {
        std::vector<T> values = flat(centroids);
        PgkmProblem problem = problem_of(values);
        problem.distance_exponent = square_exponent(bound(centroids));
        std::vector<PgkmInt128> within(centroids.size()), masses(centroids.size());
        Clusters<T> clusters = {centroids, {}, {}, std::vector<std::int64_t>(centroids.size())};
        PgkmAssignment wanted = {nullptr, nullptr, nullptr, masses.data(), within.data(), clusters.sizes.data()};
        PgkmError error = {};
        require_ok(reference_backend()->assign(data_, &problem, 1, &wanted, &error), error);
        Int128 inertia = 0, mass = 0;
        for (std::size_t j = 0; j < centroids.size(); ++j) {
            inertia += pgkm::join(within[j]);
            mass += pgkm::join(masses[j]);
        }
        for (std::size_t j = 0; j < centroids.size(); ++j) {
            clusters.within.push_back(square_sum(pgkm::join(within[j]), problem.distance_exponent));
            clusters.masses.push_back(to_double(pgkm::join(masses[j])) / to_double(mass));
        }
        clusters.inertia = square_sum(inertia, problem.distance_exponent);
        return clusters;
    }

    // Of all rows.
    double total_mass() const
    {
        Int128 mass = 0;
        for (std::int64_t i = 0; i < problem_.n_rows; ++i)
            mass += row_mass(points_, problem_, problem_.first_row + i);
        return points_.weights == nullptr ? to_double(mass)
                                          : scale_by(to_double(mass), -problem_.weight_exponent - lower_limb_bits);
    }

    Rows<T> split(const Clusters<T> &from, std::int32_t splits, std::uint32_t round) const
    {
        std::vector<std::size_t> order;
        for (std::size_t j = 0; j < from.sizes.size(); ++j)
            if (from.sizes[j] > 1 && from.within[j] > 0.0)
                order.push_back(j);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return from.within[a] > from.within[b]; });
        const std::int64_t room = problem_.n_rows - problem_.k;
        order.resize(std::min({order.size(), at(splits), at(room)}));
        Rows<T> centroids = from.centroids;
        for (const std::size_t j : order) {
            const double spread = std::sqrt(from.within[j] / (from.masses[j] * total_mass()) / d_ * 3.0);
            std::vector<T> here, there;
            for (std::size_t f = 0; f < at(d_); ++f) {
                const std::uint64_t bits = draw(seed_.seed, seed_.restart, Stream::split, round, j * at(d_) + f);
                const double u = static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
                const double offset = std::isfinite(spread) ? spread * u : 0.0;
                const double middle = static_cast<double>(centroids[j][f]);
                here.push_back(static_cast<T>(std::clamp(middle - offset, summary_.min[f], summary_.max[f])));
                there.push_back(static_cast<T>(std::clamp(middle + offset, summary_.min[f], summary_.max[f])));
            }
            bring_to_metric(here);
            bring_to_metric(there);
            centroids[j] = here;
            centroids.push_back(there);
        }
        return centroids;
    }

    Rows<T> joined(const Clusters<T> &from, std::size_t k) const
    {
        Rows<double> centroids;
        for (const std::vector<T> &centroid : from.centroids)
            centroids.emplace_back(centroid.begin(), centroid.end());
        std::vector<double> masses = from.masses;
        while (centroids.size() > k) {
            std::size_t earlier = 0, later = 0;
            double least = INFINITY;
            for (std::size_t i = 1; i < centroids.size(); ++i)
                for (std::size_t j = 0; j < i; ++j) {
                    const double square = exact_distance(centroids[i].data(), centroids[j].data(), d_);
                    const bool empty = masses[i] == 0.0 || masses[j] == 0.0;
                    const double cost = empty ? 0.0 : masses[i] / (masses[i] + masses[j]) * masses[j] * square;
                    if (cost < least) {
                        least = cost;
                        later = i;
                        earlier = j;
                    }
                }
            const double sum = masses[earlier] + masses[later];
            const double share = masses[earlier] == 0.0 ? 0.0 : masses[earlier] / sum;
            for (std::size_t f = 0; f < at(d_); ++f)
                centroids[later][f] = share == 1.0
                                          ? centroids[earlier][f]
                                          : centroids[later][f] + share * (centroids[earlier][f] - centroids[later][f]);
            masses[later] += masses[earlier];
            centroids.erase(centroids.begin() + static_cast<std::ptrdiff_t>(earlier));
            masses.erase(masses.begin() + static_cast<std::ptrdiff_t>(earlier));
        }
        Rows<T> result;
        for (const std::vector<double> &centroid : centroids) {
            result.emplace_back();
            for (const double value : centroid)
                result.back().push_back(static_cast<T>(value));
            bring_to_metric(result.back());
        }
        return result;
    }

    void bring_to_metric(std::vector<T> &centroid) const
    {
        if (params_.metric == PGKM_COSINE)
            normalise(centroid.data(), d_);
    }

    PgkmData *data_;
    const PgkmPoints &points_;
    const PgkmSummary &summary_;
    PgkmProblem &problem_;
    PgkmSeedParams seed_;
    PgkmFitParams params_;
    std::int32_t d_;
};

} // namespace

void reference_refine(PgkmData *data, const PgkmPoints &points, const PgkmSummary &summary, PgkmProblem &problem,
                      const PgkmSeedParams &seed, const PgkmFitParams &params)
{
    if (points.element == PGKM_FLOAT32)
        Refinement<float>(data, points, summary, problem, seed, params).run();
    else
        Refinement<double>(data, points, summary, problem, seed, params).run();
}

} // namespace pgkm
