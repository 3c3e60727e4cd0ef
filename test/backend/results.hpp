// results.hpp - the memory that calls of the table write to, for all groups of a case, and
// what the reference writes there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "cases.hpp"
#include "session.hpp"

namespace conformance {

struct Summaries {
    explicit Summaries(const Case &data);
    Summaries(Summaries &&) = default; // the views keep pointing at the same heap memory
    Summaries(const Summaries &) = delete;

    std::size_t d;
    std::vector<double> values; // groups x {min, max, mean, variance} x d
    std::vector<PgkmSummary> views;
};

// The problems of a case with their centroids and scales.
struct Problems {
    Problems(const Case &data, const Summaries &summaries);
    Problems(Problems &&) = default;
    Problems(const Problems &other);

    std::size_t size() const { return list.size(); }
    std::size_t centroid_bytes(std::size_t group) const;
    void set_centroids(const std::vector<double> &values);

    const Case *data;
    std::vector<std::byte> centroids;     // all groups, one after another
    std::vector<PgkmFeatureScale> scales; // groups x d
    std::vector<PgkmProblem> list;

  private:
    void point_into_own_memory();
};

struct Assignments {
    explicit Assignments(const Problems &problems);

    std::vector<std::vector<std::int32_t>> labels;
    std::vector<std::vector<double>> distances;
    std::vector<std::vector<PgkmInt128>> totals, masses, within;
    std::vector<std::vector<std::int64_t>> sizes;

    // What to hand to assign(); all outputs wanted.
    std::vector<PgkmAssignment> views();
};

// The reference's results for one case, computed when first asked for.
class Expected {
  public:
    static Expected &of(const Case &data);

    const Summaries &summaries();
    const Problems &seeded(PgkmInit init, std::uint32_t restart);
    const Problems &start(); // where assign() and fit() begin
    const Assignments &assigned();
    const Problems &fitted(std::int32_t max_iter);
    // From random rows, at most max_iter iterations, then refined: its clusters that have rows.
    const Problems &refined(std::int32_t max_iter);

    Expected(const Expected &) = delete;

  private:
    explicit Expected(const Case &data);
    struct Cache;

    const Case &data_;
    Session session_;
    std::shared_ptr<Cache> cache_;
};

inline constexpr PgkmSeedParams seed_params(PgkmInit init, std::uint32_t restart)
{
    return {init, 0x9e3779b97f4a7c15u, restart, 0};
}

} // namespace conformance
