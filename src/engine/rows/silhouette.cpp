// silhouette.cpp - distances of some rows to all, summed by cluster.
#include "engine/rows/silhouette.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// Rows of the sample that share a pass over all rows: lanes of vectors.
constexpr std::size_t lanes = 8;

// Values between two looks at the cancel flag.
constexpr std::int64_t values_per_poll = 1 << 19;

// Sums of more would take too much memory.
constexpr std::int64_t clusters_of_all_threads = 1 << 16;

using Lanes = std::array<double, lanes>;

template <typename T>
class Pass {
  public:
    // Over rows `sample`, at most as many as there are lanes.
    Pass(const LabelledRows &rows, const std::int64_t *sample, std::size_t count)
        : rows_(rows), d_(at(rows.points.d)), values_(static_cast<const T *>(rows.points.values)),
          features_(d_ * lanes), partial_(at(rows.k) * lanes), totals_(at(rows.k) * lanes)
    {
        for (std::size_t l = 0; l < lanes; ++l) // lanes that are left over repeat the first
            for (std::size_t f = 0; f < d_; ++f)
                features_[f * lanes + l] = values_[at(sample[l < count ? l : 0]) * d_ + f];
    }

    // Sums of weighted distances times `scale`.
    void run(double scale)
    {
        const std::int64_t rows_per_poll = values_per_poll / rows_.points.d + 1;
        for (std::int64_t first = 0; first < rows_.points.n; first += rows_per_poll) {
            rows_.poll();
            const std::int64_t last = std::min(first + rows_per_poll, rows_.points.n);
            for (std::int64_t i = first; i < last; ++i) {
                add(i, scale);
                if ((i + 1) % partial_sum_length == 0)
                    flush();
            }
        }
        flush();
    }

    double total(std::int32_t cluster, std::size_t lane) const
    {
        return to_double(totals_[at(cluster) * lanes + lane]);
    }

  private:
    void add(std::int64_t i, double scale)
    {
        const T *const row = values_ + at(i) * d_;
        Lanes squares = {};
        for (std::size_t f = 0; f < d_; ++f)
            for (std::size_t l = 0; l < lanes; ++l) {
                const double difference = static_cast<double>(row[f]) - features_[f * lanes + l];
                squares[l] += difference * difference;
            }
        const double weight = rows_.points.weights == nullptr ? 1.0 : rows_.points.weights[i];
        std::int64_t *const to = partial_.data() + at(rows_.labels[i]) * lanes;
        for (std::size_t l = 0; l < lanes; ++l)
            to[l] += static_cast<std::int64_t>(std::sqrt(squares[l]) * weight * scale + 0.5);
    }

    void flush()
    {
        for (std::size_t i = 0; i < totals_.size(); ++i) {
            totals_[i] += partial_[i];
            partial_[i] = 0;
        }
    }

    const LabelledRows &rows_;
    const std::size_t d_;
    const T *const values_;
    std::vector<double> features_; // of the sample: d x lanes
    std::vector<std::int64_t> partial_;
    std::vector<Int128> totals_; // k x lanes
};

// Of one row, from its sums of distances to the rows of each cluster.
template <typename Sum>
PgkmRowSilhouette silhouette(const Sum &sum, std::int32_t own, const std::vector<double> &masses)
{
    double b = INFINITY;
    std::int32_t nearest = -1;
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(masses.size()); ++j)
        if (const double mean = sum(j) / masses[at(j)]; j != own && masses[at(j)] > 0.0 && mean < b) {
            b = mean;
            nearest = j;
        }
    if (masses[at(own)] <= 1.0)
        return {0.0, nearest};
    const double a = sum(own) / (masses[at(own)] - 1.0);
    return {std::max(a, b) > 0.0 ? (b - a) / std::max(a, b) : 0.0, nearest};
}

template <typename T>
std::vector<PgkmRowSilhouette> silhouettes_of(const LabelledRows &rows, const std::vector<std::int64_t> &sample,
                                              double reach, const std::vector<double> &masses)
{
    const double scale = power_of_two(scale_exponent(reach));
    std::vector<PgkmRowSilhouette> found(sample.size());
    const auto tasks = static_cast<std::int64_t>((sample.size() + lanes - 1) / lanes);
    parallel_for(rows.pool, tasks, silhouette_threads(rows.pool.size(), rows.k), [&](std::int64_t task, int) {
        const std::size_t first = at(task) * lanes, count = std::min(lanes, sample.size() - first);
        Pass<T> pass(rows, sample.data() + first, count);
        pass.run(scale);
        for (std::size_t l = 0; l < count; ++l)
            found[first + l] = silhouette([&](std::int32_t j) { return pass.total(j, l) / scale; },
                                          rows.labels[sample[first + l]], masses);
    });
    return found;
}

} // namespace

int silhouette_threads(int threads, std::int64_t k)
{
    return static_cast<int>(std::clamp(clusters_of_all_threads / k, std::int64_t{1}, std::int64_t{threads}));
}

bool has_silhouette(const LabelledRows &rows, const std::vector<double> &masses)
{
    return rows.k >= 2 && rows.k < mass_of_all(masses);
}

std::vector<PgkmRowSilhouette> silhouettes(const LabelledRows &rows, const std::vector<std::int64_t> &sample,
                                           double reach, const std::vector<double> &masses)
{
    return rows.points.element == PGKM_FLOAT32 ? silhouettes_of<float>(rows, sample, reach, masses)
                                               : silhouettes_of<double>(rows, sample, reach, masses);
}

Silhouette mean_silhouette(const PgkmPoints &points, std::span<const std::int64_t> sample,
                           const PgkmRowSilhouette *found, std::int64_t n)
{
    const auto weight = [&](std::size_t i) { return points.weights == nullptr ? 1.0 : points.weights[sample[i]]; };
    double mass = 0.0, sum = 0.0, squares = 0.0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        mass += weight(i);
        sum += weight(i) * found[i].value;
    }
    const double mean = sum / mass, m = static_cast<double>(sample.size()), all = static_cast<double>(n);
    for (std::size_t i = 0; i < sample.size(); ++i)
        squares += weight(i) * weight(i) * (found[i].value - mean) * (found[i].value - mean);
    // A ratio of sums over a sample without replacement.
    const double error = m < all ? std::sqrt(squares * (m / (m - 1.0)) * (1.0 - m / all)) / mass : 0.0;
    return {mean, error};
}

} // namespace pgkm
