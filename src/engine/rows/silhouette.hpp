// silhouette.hpp - the silhouette of labelled rows (Rousseeuw 1987), of all of them or by a sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api.h"
#include "engine/rows/cluster_sums.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Threads for silhouettes of k clusters, of those there are, and what each needs for its sums, in bytes.
int silhouette_threads(int threads, std::int64_t k);
inline constexpr double silhouette_bytes_per_cluster = 200.0;

// Whether it is defined: not for fewer than 2 clusters, nor for as many as rows by their weights.
bool has_silhouette(const LabelledRows &rows, const std::vector<double> &masses);

// Of the rows whose numbers `sample` holds, among all of `rows`. A row of weight w counts like w rows. No weighted
// distance of two rows is more than `reach`; masses are those of the clusters. Distances are summed as integers: the
// result does not depend on the order of rows.
std::vector<PgkmRowSilhouette> silhouettes(const LabelledRows &rows, const std::vector<std::int64_t> &sample,
                                           double reach, const std::vector<double> &masses);

struct Silhouette {
    double mean;
    double error; // standard error of the mean, 0 where it is that of all rows
};

// The weighted mean over a sample of n rows, summed in its order.
Silhouette mean_silhouette(const PgkmPoints &points, std::span<const std::int64_t> sample,
                           const PgkmRowSilhouette *found, std::int64_t n);

} // namespace pgkm
