// fitter.hpp - the fits of loaded rows: restarts, the choice of the best, the final assignment.
#pragma once

#include <vector>

#include "engine/kmeans/fit.hpp"
#include "engine/kmeans/loaded_rows.hpp"

namespace pgkm {

// How rows that are loaded shall be clustered.
struct FitTask {
    PgkmOptions options;         // those of LoadedRows as to the transformation
    std::vector<std::int64_t> k; // of each group
    bool want_labels;
    bool want_distances;
    // For what is done beside the backend.
    std::int32_t threads = 1;
    std::uint64_t memory_limit = 0; // bytes; 0: none
};

// One model for each group; all groups go to the backend together. Throws Error.
std::vector<Model> fit_loaded(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor);

} // namespace pgkm
