// quality.cpp - how compact and separated the clusters of a sweep are.
#include "engine/kmeans/quality.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "numeric/thread_pool.hpp"
#include "engine/api.h"
#include "numeric/error.hpp"

namespace pgkm {
namespace {

// Rows are summed in blocks and blocks in order, whoever computed them.
constexpr std::int64_t least_block_rows = 4096;
// Of sums of blocks that are not added up yet.
constexpr std::int64_t most_pending_sums = 1 << 23;

template <typename T>
class Indices {
  public:
    Indices(const PgkmPoints &points, const Model &model, int threads, const Monitor &monitor)
        : values_(static_cast<const T *>(points.values)), weights_(points.weights), n_(points.n), d_(points.d),
          k_(model.k), model_(model), monitor_(monitor), pool_(threads)
    {
    }

    PgkmQuality run()
    {
        if (k_ < 2 || k_ >= n_)
            return {NAN, NAN, NAN};
        find_means();
        find_spreads();
        return {davies_bouldin(), calinski_harabasz(), silhouette_ / mass_};
    }

  private:
    using Sums = std::vector<double>;

    // Adds body(first, last, sums) over all blocks into sums of the given size. Blocks are long
    // enough for as many sums as there are clusters.
    Sums add_up(std::size_t size, const std::function<void(std::int64_t, std::int64_t, Sums &)> &body)
    {
        const std::int64_t block_rows = std::max(least_block_rows, std::int64_t{k_});
        const std::int64_t blocks = (n_ + block_rows - 1) / block_rows;
        // As many blocks at a time as keep the threads busy, and as their sums leave memory.
        const std::int64_t stride = std::clamp(most_pending_sums / static_cast<std::int64_t>(size), std::int64_t{1},
                                               4 * std::int64_t{pool_.size()});
        std::vector<Sums> parts(static_cast<std::size_t>(std::min(blocks, stride)));
        Sums total(size, 0.0);
        for (std::int64_t begin = 0; begin < blocks; begin += stride) {
            const std::int64_t count = std::min(stride, blocks - begin);
            pool_.run(count, [&](std::int64_t task, int) {
                monitor_.poll();
                Sums &part = parts[static_cast<std::size_t>(task)];
                part.assign(size, 0.0);
                const std::int64_t first = (begin + task) * block_rows;
                body(first, std::min(first + block_rows, n_), part);
            });
            for (std::int64_t task = 0; task < count; ++task)
                for (std::size_t i = 0; i < size; ++i)
                    total[i] += parts[static_cast<std::size_t>(task)][i];
        }
        return total;
    }

    // The means of the labelled rows, and of all; masses.
    void find_means()
    {
        const auto width = static_cast<std::size_t>(d_) + 1; // the mass stands behind the features
        means_ = add_up(width * static_cast<std::size_t>(k_), [&](std::int64_t first, std::int64_t last, Sums &sums) {
            for (std::int64_t i = first; i < last; ++i) {
                if ((i - first) % rows_between_polls() == 0)
                    monitor_.poll();
                double *to = sums.data() + width * label(i);
                for (std::int32_t f = 0; f < d_; ++f)
                    to[f] += weight(i) * value(i, f);
                to[d_] += weight(i);
            }
        });
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
        const Sums sums = add_up(k + 2, [&](std::int64_t first, std::int64_t last, Sums &part) {
            std::vector<double> row(static_cast<std::size_t>(d_)), squares(k);
            for (std::int64_t i = first; i < last; ++i) {
                if ((i - first) % rows_between_polls() == 0)
                    monitor_.poll();
                for (std::int32_t f = 0; f < d_; ++f)
                    row[static_cast<std::size_t>(f)] = value(i, f);
                const double square = square_distance(row.data(), mean(label(i)));
                part[label(i)] += weight(i) * std::sqrt(square);
                part[k] += weight(i) * square;
                pgkm_distances(row.data(), model_.centroids.data(), k_, d_, squares.data());
                part[k + 1] += weight(i) * silhouette(squares, label(i));
            }
        });
        spreads_.assign(sums.begin(), sums.begin() + k_);
        for (std::size_t j = 0; j < k; ++j)
            spreads_[j] /= mass_of(j);
        within_ = sums[k];
        silhouette_ = sums[k + 1];
    }

    static double silhouette(std::vector<double> &squares, std::size_t own)
    {
        const double a = std::sqrt(squares[own]);
        squares[own] = INFINITY;
        const double b = std::sqrt(*std::min_element(squares.begin(), squares.end()));
        return std::max(a, b) > 0.0 ? (b - a) / std::max(a, b) : 0.0;
    }

    // The mean over clusters of the largest (spread + spread) / distance of the means. A pair whose
    // means coincide says nothing, as in scikit-learn.
    double davies_bouldin()
    {
        Sums worst(static_cast<std::size_t>(k_), 0.0);
        pool_.run(k_, [&](std::int64_t task, int) {
            monitor_.poll();
            const auto i = static_cast<std::size_t>(task);
            for (std::size_t j = 0; j < worst.size(); ++j) {
                const double distance = std::sqrt(square_distance(mean(i), mean(j)));
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
            between += mass_of(j) * square_distance(mean(j), all_.data());
        return within_ == 0.0 ? 1.0 : between * (mass_ - k_) / (within_ * (k_ - 1));
    }

    double square_distance(const double *a, const double *b) const
    {
        double sum = 0.0;
        for (std::int32_t f = 0; f < d_; ++f)
            sum += (a[f] - b[f]) * (a[f] - b[f]);
        return sum;
    }

    // A few milliseconds of distances.
    std::int64_t rows_between_polls() const
    {
        return std::max(std::int64_t{1}, (std::int64_t{1} << 22) / (std::int64_t{k_} * d_));
    }
    std::size_t label(std::int64_t i) const
    {
        return static_cast<std::size_t>(model_.labels[static_cast<std::size_t>(i)]);
    }
    double value(std::int64_t i, std::int32_t f) const { return static_cast<double>(values_[i * d_ + f]); }
    double weight(std::int64_t i) const { return weights_ == nullptr ? 1.0 : weights_[i]; }
    const double *mean(std::size_t j) const { return means_.data() + (static_cast<std::size_t>(d_) + 1) * j; }
    double mass_of(std::size_t j) const { return mean(j)[d_]; }

    const T *values_;
    const double *weights_;
    const std::int64_t n_;
    const std::int32_t d_, k_;
    const Model &model_;
    const Monitor &monitor_;
    ThreadPool pool_;
    Sums means_; // k x (d + 1)
    Sums all_;   // d + 1
    Sums spreads_;
    double mass_ = 0.0, within_ = 0.0, silhouette_ = 0.0;
};

} // namespace

PgkmQuality quality_of(const PgkmPoints &points, const Model &model, int threads, const Monitor &monitor)
{
    if (points.element == PGKM_FLOAT32)
        return Indices<float>(points, model, threads, monitor).run();
    return Indices<double>(points, model, threads, monitor).run();
}

} // namespace pgkm
