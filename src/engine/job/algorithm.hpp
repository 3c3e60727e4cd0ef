// algorithm.hpp - what an algorithm brings to a job. A job does the rest: it checks memory, chooses a backend,
// loads the rows or finds them loaded, and falls back to the CPU.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/api.h"
#include "engine/backends/work.hpp"
#include "engine/job/monitor.hpp"
#include "engine/job/workplace.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// The models that a job found.
class Models {
  public:
    virtual ~Models() = default;

    // What is left to do once the backend is closed. Throws Error.
    virtual void finish(Monitor &) {}

    // Of groups, or of a sweep, one for each; else 1.
    virtual std::int64_t size() const { return 1; }

    // Model i, 0 <= i < size(), into the fields of *result that its algorithm has; arrays live as long as this.
    virtual void get(std::int64_t i, PgkmResult *result) const = 0;
};

// A group of a request without groups is its rows, with its k.
struct Algorithm {
    // What a request is about, for an error: "clustering".
    const char *name;

    // Throws Error(PGKM_INVALID) naming the option that does not suit the group, which has rows.
    void (*check)(const PgkmRequest &request, const PgkmGroup &group);

    // How much work one group is.
    Work (*work)(const PgkmRequest &request, const PgkmGroup &group);

    // Bytes of host memory for `rows` rows in all groups; and those that one group adds. Neither counts the
    // copies by which groups are brought together.
    double (*fixed_bytes)(const PgkmRequest &request, double rows);
    double (*group_bytes)(const PgkmRequest &request, const PgkmGroup &group);

    // Whether a backend can do it: PGKM_OK, or PGKM_UNSUPPORTED with a text. NULL: each can.
    PgkmStatus (*supported)(const PgkmRequest &request, const PgkmBackend &table, PgkmError *error);

    // Fits all groups. There is no place where the request has no rows. Throws Error.
    std::unique_ptr<Models> (*fit)(const PgkmRequest &request, Workplace *place, Monitor &monitor);

    bool without_rows = false; // whether no rows at all have a model
};

// All that there are, each in its folder, and that of a request (algorithms.cpp).
extern const Algorithm kmeans, mixtures, pca, serving, reductions, trees, judging;
const Algorithm &algorithm_of(const PgkmRequest &request);

// Its check, and what holds for all. Throws Error.
void check_group(const Algorithm &algorithm, const PgkmRequest &request, const PgkmGroup &group);

// The groups of a request: its own, or its points as the only one, with those of other servers.
std::vector<PgkmGroup> groups_of(const PgkmRequest &request);

// How many k a sweep fits of a group, k number i, and the last of them.
inline std::int64_t sweep_count(const PgkmRequest &request, const PgkmGroup &group)
{
    const std::int64_t last = std::max(group.k, std::min(request.k_last, group.n));
    const std::int64_t *const list = request.sweep_k;
    return list == nullptr ? last - group.k + 1 : std::upper_bound(list, list + request.n_sweep, last) - list;
}

inline std::int64_t sweep_k(const PgkmRequest &request, const PgkmGroup &group, std::int64_t i)
{
    return request.sweep_k == nullptr ? group.k + i : request.sweep_k[i];
}

inline std::int64_t sweep_last(const PgkmRequest &request, const PgkmGroup &group)
{
    return sweep_k(request, group, sweep_count(request, group) - 1);
}

// Whether the job never sees all rows: other servers hold some, or they come chunk by chunk.
inline bool is_spread(const PgkmRequest &request)
{
    return request.n_nodes > 0 || request.stream != nullptr;
}

// Rows of a group by which the copies of float64 sums are planned: those of all chunks.
std::int64_t rows_of_sums(const PgkmRequest &request, const PgkmGroup &group);

inline bool has_rows(const PgkmRequest &request)
{
    return request.n_groups > 0 || is_spread(request) || (request.points.values != nullptr && request.points.n > 0);
}

template <typename T, typename Allocator>
const T *data_or_null(const std::vector<T, Allocator> &values)
{
    return values.empty() ? nullptr : values.data();
}

// All work of a request.
Work work_of(const Algorithm &algorithm, const PgkmRequest &request);

// Threads that its backend is opened with: as many as the work is worth, or all where rows stay, since the jobs to
// come may be larger.
std::int32_t threads_of(const PgkmRequest &request, const Work &work);

// As pgkm_request_estimate and pgkm_group_estimate.
std::uint64_t estimate_of(const Algorithm &algorithm, const PgkmRequest &request);
std::uint64_t estimate_of(const Algorithm &algorithm, const PgkmRequest &request, const PgkmGroup &group);

// What a job found.
struct Outcome {
    std::unique_ptr<Models> models;
    const char *backend = nullptr; // its name; NULL: none was needed
    std::string notice;            // not empty: a device failed on the way
};

// Fits a request on the first backend that can; with backend = auto a device that fails is followed by the CPU. The
// monitor learns of every step. Throws Error.
Outcome run_request(const Algorithm &algorithm, const PgkmRequest &request, Monitor &monitor);

} // namespace pgkm
