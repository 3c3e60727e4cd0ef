// loaded_rows.hpp - the rows of a request as a backend works on them: side by side, transformed
// as the options say, with the statistics of each group.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/api.h"
#include "engine/backends/session.hpp"
#include "engine/job/algorithm.hpp"
#include "engine/rows/prepare.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// One group's place among the rows, and what is known of it.
struct LoadedGroup {
    std::int64_t first_row;
    std::int64_t n;
    Standardization standardization;              // empty unless asked for
    Summary summary;                              // of the transformed rows
    std::vector<PgkmFeatureScale> feature_scales; // d
    std::int32_t weight_exponent;
};

class LoadedRows {
  public:
    // Loads the request's rows into the session, as `options` say; its own options are not read. Throws Error.
    LoadedRows(const PgkmRequest &request, const PgkmOptions &options, Session &session, Monitor &monitor);
    // Rows of `from`, which this server holds, as they are: row i is its row order[i], and groups of `sizes` rows lie
    // one behind the other. It is loaded instead.
    LoadedRows(const LoadedRows &from, const std::vector<std::int64_t> &order, const std::vector<std::int64_t> &sizes,
               Session &session, Monitor &monitor);
    LoadedRows(const LoadedRows &) = delete;
    LoadedRows &operator=(const LoadedRows &) = delete;

    std::int32_t d() const { return points_.d; }
    const PgkmPoints &points() const { return points_; } // all of them, as loaded
    const std::vector<LoadedGroup> &groups() const { return groups_; }
    const LoadedGroup &group_of(const PgkmProblem &problem) const; // where its rows lie
    bool are_spread() const { return is_spread_; }                 // some rows, or all, are not here
    bool has_moments() const { return has_moments_; }              // in the summaries
    // Rows are in batch order (rows/batch_order.hpp): row i of the last group is its row order()[i]. Empty: as they
    // came.
    const std::vector<std::int64_t> &order() const { return order_; }
    std::vector<PgkmProblem> problems() const; // a range of rows for each group

  private:
    void add_group(std::int64_t n);
    void gather(const std::vector<PgkmGroup> &groups, Session &session, const Monitor &monitor);
    void transform(const PgkmOptions &options, Session &session, const Monitor &monitor);
    template <typename T>
    void transform_here(PgkmMetric metric, const Monitor &monitor);
    void bring_into_batch_order(std::uint64_t seed, Session &session, const Monitor &monitor);
    void bring_into_order(const std::vector<std::int64_t> &order, Session &session, const Monitor &monitor);
    void summarise(Session &session, const Monitor &monitor);
    std::vector<Summary> load(Session &session, bool want_moments) const;

    PgkmPoints points_;
    bool is_spread_ = false;
    std::vector<LoadedGroup> groups_;
    std::unique_ptr<std::byte[]> values_; // when gathered or transformed
    std::unique_ptr<double[]> weights_;   // when gathered
    std::vector<std::int64_t> order_;
    bool has_moments_;
};

// Whether rows change before they are clustered.
inline bool are_transformed(const PgkmOptions &options)
{
    return options.standardize != 0 || options.metric == PGKM_COSINE;
}

// Whether the rows that are clustered are a copy, of other values or in another order.
inline bool are_copied(const PgkmOptions &options)
{
    return are_transformed(options) || options.batch_size > 0;
}

// The rows loaded in the place, which stayed there from an earlier job or are loaded now. They are needed as long as
// they are loaded. Throws Error.
std::shared_ptr<const LoadedRows> rows_in(Workplace &place, const PgkmRequest &request, const PgkmOptions &options,
                                          Monitor &monitor);

// No (weighted) squared distance between a row of the group and one of k centroids (k x d) can be
// larger. Throws Error(PGKM_INVALID) when it is not finite.
template <typename T>
double distance_bound(const LoadedGroup &group, std::int32_t d, const T *centroids, std::int32_t k,
                      const Monitor &monitor);

// No weighted distance between two rows of the group can be larger. Throws likewise.
double reach_of(const LoadedGroup &group, std::int32_t d, const Monitor &monitor);

} // namespace pgkm
