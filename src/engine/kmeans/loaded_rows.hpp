// loaded_rows.hpp - the rows of a request as a backend works on them: side by side, transformed
// as the options say, with the statistics of each group.
#pragma once

#include <memory>
#include <vector>

#include "engine/api.h"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"
#include "engine/kmeans/prepare.hpp"
#include "engine/backends/session.hpp"

namespace pgkm {

// One group's place among the rows, and what is known of it.
struct LoadedGroup {
    std::int64_t              first_row;
    std::int64_t              n;
    Standardization           standardization; // empty unless asked for
    Summary                   summary;         // of the transformed rows
    std::vector<std::int32_t> feature_exponents;
    std::int32_t              weight_exponent;
};

template <typename T>
class LoadedRows {
  public:
    // Loads them into the session. Moments are needed for a tolerance only.
    LoadedRows(const PgkmFitRequest &request, Session &session, Monitor &monitor);
    LoadedRows(const LoadedRows &) = delete;
    LoadedRows &operator=(const LoadedRows &) = delete;

    std::int32_t                    d() const { return points_.d; }
    const PgkmPoints               &points() const { return points_; } // all of them, as loaded
    const std::vector<LoadedGroup> &groups() const { return groups_; }

  private:
    void gather(const std::vector<PgkmGroup> &groups, int threads, const PgkmHost &host);
    void transform(const PgkmOptions &options, Session &session, const PgkmHost &host);
    std::vector<PgkmProblem> problems() const;

    PgkmPoints                points_;
    std::vector<LoadedGroup>  groups_;
    std::unique_ptr<T[]>      values_;  // when gathered or transformed
    std::unique_ptr<double[]> weights_; // when gathered
};

// No (weighted) squared distance between a row of the group and one of k centroids can be
// larger. Throws when it is not finite.
template <typename T>
double distance_bound(const LoadedGroup &group, std::int32_t d, const T *centroids, std::int32_t k);

} // namespace pgkm
