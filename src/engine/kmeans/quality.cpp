// quality.cpp - how compact and separated the clusters of a sweep are.
#include "engine/kmeans/quality.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/rows/cluster_sums.hpp"
#include "numeric/error.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {
namespace {

class Indices {
  public:
    Indices(const Model &model, const ClusterSums &sums, double rows, int threads, const Monitor &monitor)
        : n_(static_cast<double>(model.n)), rows_(rows), d_(model.d), k_(model.k), sums_(sums), monitor_(monitor),
          threads_(threads)
    {
    }

    PgkmQuality run()
    {
        // Weights of less than 1 make fewer rows of many. Indices that do not divide by a number of rows stay.
        if (k_ < 2 || k_ >= std::max(n_, rows_))
            return no_quality;
        find_means();
        find_spreads();
        PgkmQuality quality = no_quality;
        quality.davies_bouldin = davies_bouldin();
        quality.simplified_silhouette = silhouette_ / mass_;
        if (k_ < rows_)
            quality.calinski_harabasz = calinski_harabasz();
        return quality;
    }

  private:
    using Sums = std::vector<double>;

    // The means of the labelled rows, and of all; masses.
    void find_means()
    {
        const auto width = static_cast<std::size_t>(d_) + 1; // the mass stands behind the features
        means_ = sums_.totals();
        all_.assign(width, 0.0);
        for (std::size_t j = 0; j < static_cast<std::size_t>(k_); ++j)
            for (std::size_t f = 0; f < width; ++f)
                all_[f] += means_[width * j + f];
        mass_ = all_[static_cast<std::size_t>(d_)];
        for (std::size_t j = 0; j < static_cast<std::size_t>(k_); ++j)
            for (std::size_t f = 0; f + 1 < width; ++f)
                means_[width * j + f] /= mass_of(j);
        for (std::size_t f = 0; f + 1 < width; ++f)
            all_[f] /= mass_;
    }

    // Mean distances to the cluster's mean, squares to it, and the silhouettes.
    void find_spreads()
    {
        const auto k = static_cast<std::size_t>(k_);
        const Sums sums = sums_.spreads(means_);
        spreads_.assign(sums.begin(), sums.begin() + k_);
        for (std::size_t j = 0; j < k; ++j)
            spreads_[j] /= mass_of(j);
        within_ = sums[k];
        silhouette_ = sums[k + 1];
    }

    // The mean over clusters of the largest (spread + spread) / distance of the means. A pair whose
    // means coincide says nothing, as in scikit-learn.
    double davies_bouldin()
    {
        Sums worst(static_cast<std::size_t>(k_), 0.0);
        ThreadPool pool(threads_);
        pool.run(k_, [&](std::int64_t task, int) {
            monitor_.poll();
            const auto i = static_cast<std::size_t>(task);
            for (std::size_t j = 0; j < worst.size(); ++j) {
                const double distance = std::sqrt(square_distance(mean(i), mean(j), d_));
                if (distance > 0.0)
                    worst[i] = std::max(worst[i], (spreads_[i] + spreads_[j]) / distance);
            }
        });
        return std::accumulate(worst.begin(), worst.end(), 0.0) / k_;
    }

    double calinski_harabasz() const
    {
        double between = 0.0;
        for (std::size_t j = 0; j < static_cast<std::size_t>(k_); ++j)
            between += mass_of(j) * square_distance(mean(j), all_.data(), d_);
        return within_ == 0.0 ? 1.0 : between * (rows_ - k_) / (within_ * (k_ - 1));
    }

    const double *mean(std::size_t j) const { return means_.data() + (static_cast<std::size_t>(d_) + 1) * j; }
    double mass_of(std::size_t j) const { return mean(j)[d_]; }

    const double n_, rows_; // rows, and what they count for
    const std::int32_t d_, k_;
    const ClusterSums &sums_;
    const Monitor &monitor_;
    const int threads_;
    Sums means_; // k x (d + 1)
    Sums all_;   // d + 1
    Sums spreads_;
    double mass_ = 0.0, within_ = 0.0, silhouette_ = 0.0;
};

// That of a model as a mixture of spheres of one variance, to which rows belong wholly. NaN where every row is a
// centroid.
double information_criterion(const Model &model, const std::vector<double> &masses, double n)
{
    const double d = model.d;
    if (!(model.inertia > 0.0))
        return NAN;
    // Weights of components, their means, the variance: inertia / (n d) is the most likely one.
    const double parameters = (d + 1.0) * static_cast<double>(masses.size());
    double log_likelihood = -0.5 * n * d * (std::log(2.0 * M_PI * (model.inertia / (n * d))) + 1.0);
    for (const double mass : masses)
        if (mass > 0.0)
            log_likelihood += mass * std::log(mass / n);
    return parameters * std::log(n) - 2.0 * log_likelihood;
}

} // namespace

PgkmQuality quality_of(const Model &model, const ClusterSums &sums, const std::vector<double> &masses, int threads,
                       const Monitor &monitor)
{
    const double rows = mass_of_all(masses);
    PgkmQuality quality = Indices(model, sums, rows, threads, monitor).run();
    quality.bic = information_criterion(model, masses, rows);
    return quality;
}

} // namespace pgkm
