// fitter.hpp - the fits of loaded rows: restarts, the choice of the best, the final assignment.
#pragma once

#include <vector>

#include "engine/kmeans/fit.hpp"
#include "engine/kmeans/loaded_rows.hpp"

namespace pgkm {

// How rows that are loaded shall be clustered.
struct FitTask {
    PgkmOptions options;         // those of LoadedRows as to the transformation
    std::vector<std::int64_t> k; // of each group; or several of the only group, each of which has a model
    bool want_labels;
    bool want_distances;
    std::uint64_t memory_limit = 0; // bytes, for what is done beside the backend; 0: none
    std::int32_t at_once = 1; // restarts, of all k, that go to the backend together, as restarts_at_once() has them
    bool want_means = false;  // and masses
    const std::int32_t *labels = nullptr; // of the only group's rows, 0 .. k - 1: they are not sought, centroids are
                                          // the means of their rows
    std::vector<std::size_t> groups = {}; // the group of each k; empty: each group in its turn, or the only one
    std::int64_t init_k = 0;              // what is chosen by k suits one fit of so many clusters; 0: each by itself
};

// One model for each k; all groups go to the backend together. Throws Error.
std::vector<Model> fit_loaded(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor);

// Labels, and squared distances, of the only group's rows under its model. Throws Error.
void label_rows(const LoadedRows &rows, Session &session, bool want_labels, bool want_distances, Model &model);

} // namespace pgkm
