// quality.cpp - how compact and separated the clusters of a sweep are.
#include "engine/kmeans/quality.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/rows/cluster_sums.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// Of each cluster the largest (spread + spread) / distance of the means. A pair whose means coincide says nothing, as
// in scikit-learn.
std::vector<double> davies_bouldin(const Model &model, const std::vector<double> &spreads, ThreadPool &pool,
                                   const Monitor &monitor)
{
    std::vector<double> worst(at(model.k), 0.0);
    pool.run(model.k, [&](std::int64_t i, int) {
        monitor.poll();
        for (std::int64_t j = 0; j < model.k; ++j) {
            const double *const means = model.means.data();
            const double distance = std::sqrt(square_distance(means + i * model.d, means + j * model.d, model.d));
            if (distance > 0.0)
                worst[at(i)] = std::max(worst[at(i)], (spreads[at(i)] + spreads[at(j)]) / distance);
        }
    });
    return worst;
}

double calinski_harabasz(const Model &model, double mass, double within)
{
    std::vector<double> all(at(model.d), 0.0); // the mean of all rows
    for (std::size_t i = 0; i < model.means.size(); ++i)
        all[i % all.size()] += model.masses[i / all.size()] * model.means[i] / mass;
    double between = 0.0;
    for (std::int64_t j = 0; j < model.k; ++j)
        between += model.masses[at(j)] * square_distance(model.means.data() + j * model.d, all.data(), model.d);
    return within == 0.0 ? 1.0 : between * (mass - model.k) / (within * (model.k - 1));
}

// That of a model as a mixture of spheres of one variance, to which rows belong wholly. NaN where every row is a
// centroid.
double information_criterion(const Model &model, double n)
{
    const double d = model.d;
    if (!(model.inertia > 0.0))
        return NAN;
    // Weights of components, their means, the variance: inertia / (n d) is the most likely one.
    const double parameters = (d + 1.0) * model.k;
    double log_likelihood = -0.5 * n * d * (std::log(2.0 * M_PI * (model.inertia / (n * d))) + 1.0);
    for (const double mass : model.masses)
        if (mass > 0.0)
            log_likelihood += mass * std::log(mass / n);
    return parameters * std::log(n) - 2.0 * log_likelihood;
}

} // namespace

PgkmQuality quality_of(const Model &model, const std::function<std::vector<double>()> &find_spreads, ThreadPool &pool,
                       const Monitor &monitor, std::vector<double> *ratios)
{
    const double rows = mass_of_all(model.masses);
    PgkmQuality quality = no_quality;
    quality.bic = information_criterion(model, rows);
    // Weights of less than 1 make fewer rows of many. Indices that do not divide by a number of rows stay.
    if (model.k < 2 || model.k >= std::max(static_cast<double>(model.n), rows))
        return quality;
    std::vector<double> spreads = find_spreads();
    const double within = spreads[at(model.k)], silhouettes = spreads[at(model.k) + 1];
    for (std::size_t j = 0; j < at(model.k); ++j)
        spreads[j] = model.masses[j] > 0.0 ? spreads[j] / model.masses[j] : NAN; // of no mass: passed over
    const std::vector<double> worst = davies_bouldin(model, spreads, pool, monitor);
    quality.davies_bouldin = std::accumulate(worst.begin(), worst.end(), 0.0) / model.k;
    if (ratios != nullptr)
        *ratios = worst;
    quality.simplified_silhouette = silhouettes / rows;
    if (model.k < rows)
        quality.calinski_harabasz = calinski_harabasz(model, rows, within);
    return quality;
}

} // namespace pgkm
