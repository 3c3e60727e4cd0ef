// silhouette.cpp - distances of some rows to all, summed by cluster.
#include "engine/rows/silhouette.hpp"

#include <algorithm>
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

// Squared distances of a row to those of the sample, which lie feature by feature. Products are not fused: the same
// bits with any instructions.
template <typename T>
__attribute__((always_inline)) inline void squares_of(const T *row, const double *features, std::size_t d,
                                                      double *squares)
{
    double sums[lanes] = {};
    for (std::size_t f = 0; f < d; ++f)
        for (std::size_t l = 0; l < lanes; ++l) {
            const double difference = static_cast<double>(row[f]) - features[f * lanes + l];
            sums[l] += difference * difference;
        }
    std::copy(sums, sums + lanes, squares);
}

template <typename T>
void squares_portable(const T *row, const double *features, std::size_t d, double *squares)
{
    squares_of(row, features, d, squares);
}

#if defined(__x86_64__)
template <typename T>
__attribute__((target("avx2"))) void squares_avx2(const T *row, const double *features, std::size_t d, double *squares)
{
    squares_of(row, features, d, squares);
}
#endif

template <typename T>
auto best_squares()
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return squares_avx2<T>;
#endif
    return squares_portable<T>;
}

// A labelling of the rows, and the place of its clusters among the sums of all.
struct Sums {
    const Labelling &labelling;
    std::size_t first;
};

template <typename T>
class Pass {
  public:
    // Over rows `sample`, at most as many as there are lanes; k clusters of all labellings.
    Pass(const PgkmPoints &points, const std::vector<Sums> &labellings, std::size_t k, const std::int64_t *sample,
         std::size_t count)
        : points_(points), labellings_(labellings), d_(at(points.d)), values_(static_cast<const T *>(points.values)),
          features_(d_ * lanes), partial_(k * lanes), totals_(k * lanes)
    {
        for (std::size_t l = 0; l < lanes; ++l) // lanes that are left over repeat the first
            for (std::size_t f = 0; f < d_; ++f)
                features_[f * lanes + l] = values_[at(sample[l < count ? l : 0]) * d_ + f];
    }

    // Sums of weighted distances times `scale`.
    void run(double scale, const std::function<void()> &poll)
    {
        const std::int64_t rows_per_poll = values_per_poll / points_.d + 1;
        for (std::int64_t first = 0; first < points_.n; first += rows_per_poll) {
            poll();
            const std::int64_t last = std::min(first + rows_per_poll, points_.n);
            for (std::int64_t i = first; i < last; ++i) {
                add(i, scale);
                if ((i + 1) % partial_sum_length == 0)
                    flush();
            }
        }
        flush();
    }

    double total(std::size_t cluster, std::size_t lane) const { return to_double(totals_[cluster * lanes + lane]); }

  private:
    void add(std::int64_t i, double scale)
    {
        double squares[lanes];
        squares_(values_ + at(i) * d_, features_.data(), d_, squares);
        const double weight = points_.weights == nullptr ? 1.0 : points_.weights[i];
        std::int64_t parts[lanes];
        for (std::size_t l = 0; l < lanes; ++l)
            parts[l] = static_cast<std::int64_t>(std::sqrt(squares[l]) * weight * scale + 0.5);
        for (const Sums &sums : labellings_) {
            std::int64_t *const to = partial_.data() + (sums.first + at(sums.labelling.labels[i])) * lanes;
            for (std::size_t l = 0; l < lanes; ++l)
                to[l] += parts[l];
        }
    }

    void flush()
    {
        for (std::size_t i = 0; i < totals_.size(); ++i) {
            totals_[i] += partial_[i];
            partial_[i] = 0;
        }
    }

    const PgkmPoints &points_;
    const std::vector<Sums> &labellings_;
    const std::size_t d_;
    const T *const values_;
    void (*const squares_)(const T *, const double *, std::size_t, double *) = best_squares<T>();
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
std::vector<PgkmRowSilhouette> silhouettes_of(const PgkmPoints &points, const std::vector<Sums> &labellings,
                                              std::size_t k, const std::vector<std::int64_t> &sample, double reach,
                                              ThreadPool &pool, const std::function<void()> &poll)
{
    const double scale = power_of_two(scale_exponent(reach));
    std::vector<PgkmRowSilhouette> found(labellings.size() * sample.size());
    const auto tasks = static_cast<std::int64_t>((sample.size() + lanes - 1) / lanes);
    const auto threads = silhouette_threads(pool.size(), static_cast<std::int64_t>(k));
    parallel_for(pool, tasks, threads, [&](std::int64_t task, int) {
        const std::size_t first = at(task) * lanes, count = std::min(lanes, sample.size() - first);
        Pass<T> pass(points, labellings, k, sample.data() + first, count);
        pass.run(scale, poll);
        for (std::size_t m = 0; m < labellings.size(); ++m) {
            const auto &[labelling, place] = labellings[m];
            for (std::size_t l = 0; l < count; ++l)
                found[m * sample.size() + first + l] =
                    silhouette([&, from = place](std::int32_t j) { return pass.total(from + at(j), l) / scale; },
                               labelling.labels[sample[first + l]], labelling.masses);
        }
    });
    return found;
}

} // namespace

int silhouette_threads(int threads, std::int64_t k)
{
    return static_cast<int>(
        std::clamp(clusters_of_all_threads / std::max(k, std::int64_t{1}), std::int64_t{1}, std::int64_t{threads}));
}

bool has_silhouette(const std::vector<double> &masses)
{
    return masses.size() >= 2 && static_cast<double>(masses.size()) < mass_of_all(masses);
}

std::vector<PgkmRowSilhouette> silhouettes(const PgkmPoints &points, const std::vector<Labelling> &labellings,
                                           const std::vector<std::int64_t> &sample, double reach, ThreadPool &pool,
                                           const std::function<void()> &poll)
{
    std::vector<Sums> sums;
    std::size_t k = 0;
    for (const Labelling &labelling : labellings) {
        sums.push_back({labelling, k});
        k += labelling.masses.size();
    }
    return points.element == PGKM_FLOAT32 ? silhouettes_of<float>(points, sums, k, sample, reach, pool, poll)
                                          : silhouettes_of<double>(points, sums, k, sample, reach, pool, poll);
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
