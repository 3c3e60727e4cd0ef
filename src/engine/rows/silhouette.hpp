// silhouette.hpp - the silhouette of labelled rows (Rousseeuw 1987), of all of them or by a sample.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/api.h"
#include "engine/rows/cluster_sums.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Threads for silhouettes of k clusters in all, of those there are, and what each needs for its sums, in bytes.
int silhouette_threads(int threads, std::int64_t k);
inline constexpr double silhouette_bytes_per_cluster = 200.0;

// Labels of rows, and the masses of their clusters.
struct Labelling {
    const std::int32_t *labels;
    const std::vector<double> &masses;
};

// Whether it is defined: not for fewer than 2 clusters, nor for as many as rows by their weights.
bool has_silhouette(const std::vector<double> &masses);

// Of each labelling the silhouettes of the rows whose numbers `sample` holds, among all points; one labelling behind
// the other. A row of weight w counts like w rows. No weighted distance of two rows is more than `reach`. Distances are
// taken once for all labellings, and summed as integers: the result does not depend on the order of rows. poll() may
// throw.
std::vector<PgkmRowSilhouette> silhouettes(const PgkmPoints &points, const std::vector<Labelling> &labellings,
                                           const std::vector<std::int64_t> &sample, double reach, ThreadPool &pool,
                                           const std::function<void()> &poll);

struct Silhouette {
    double mean;
    double error; // standard error of the mean, 0 where it is that of all rows
};

// The weighted mean over a sample of n rows, summed in its order.
Silhouette mean_silhouette(const PgkmPoints &points, std::span<const std::int64_t> sample,
                           const PgkmRowSilhouette *found, std::int64_t n);

} // namespace pgkm
