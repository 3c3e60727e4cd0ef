// silhouette.hpp - the silhouette of labelled rows (Rousseeuw 1987), of all of them or by a sample.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/rows/cluster_sums.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Threads for silhouettes of k clusters, of those there are, and what each needs for its sums, in bytes.
int silhouette_threads(int threads, std::int64_t k);
inline constexpr double silhouette_bytes_per_cluster = 200.0;

// Both NaN where the silhouette is not defined: fewer than 2 clusters, or as many as rows by their weights.
struct Silhouette {
    double mean;
    double error; // standard error of the mean, 0 where it is that of all rows
};

// Mean over the rows whose numbers `sample` holds of (b - a) / max(a, b): a is the mean distance to the other rows of
// the own cluster, b the least mean distance to the rows of another one, and rows are all of `rows`. A row alone in its
// cluster has 0. A row of weight w counts like w rows. No weighted distance of two rows is more than `reach`; masses
// are those of the clusters. Distances are summed as integers: the result depends on the order of `sample` alone.
Silhouette silhouette_of(const LabelledRows &rows, const std::vector<std::int64_t> &sample, double reach,
                         const std::vector<double> &masses);

} // namespace pgkm
