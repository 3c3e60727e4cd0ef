// sweep.hpp - fits for each k of a range, and how good their clusters are.
#pragma once

#include <vector>

#include "engine/kmeans/fitter.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// What a pair of rows costs beside its features, in multiply-adds, where its distance is summed.
inline constexpr double cost_of_root = 16.0;

// How many of n rows the silhouettes of a sweep, or of labels, are of; 0 where none are wanted or rows lie on other
// servers.
std::int64_t silhouette_rows(const PgkmRequest &request, std::int64_t n);

// How many fits of a group have their silhouettes taken from the same distances. Their labels are kept so long.
std::int64_t judged_together(const PgkmRequest &request);

// The figures of one k after the other, up to the last that differs, with their quality, and one of them suggested. Or
// the suggested model of each group, without labels. Throws Error.
std::vector<Model> sweep(Workplace &place, const LoadedRows &rows, FitTask task, const PgkmRequest &request,
                         Monitor &monitor);

} // namespace pgkm
