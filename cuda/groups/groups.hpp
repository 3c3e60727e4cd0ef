// groups.hpp - many small problems at once, one block each.
//
// A problem of some thousand rows cannot fill the device, and thousands of them one after the other would spend their
// time in launches. Here a block seeds, fits or assigns a problem by itself, in one launch for all. A problem that
// does not fit (eligible) goes to the single-problem kernels, and so does a fit that meets an empty cluster: it starts
// again there from its own centroids. All calls throw Error: PGKM_CANCELLED, PGKM_LIMIT, or a fault of the device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plugin/context.hpp"
#include "device/view.cuh"

namespace pgkm::cuda {

inline constexpr int group_threads = 256;
inline constexpr std::int64_t group_rows_limit = 131072; // sums of 46-bit masses stay below 2^63

// One problem as the kernels see it.
struct GroupProblem {
    std::int64_t first_row;
    std::int64_t n_rows;
    std::int64_t cluster; // of its first cluster among all problems'
    std::int32_t k;
    std::int32_t weight_exponent;
    std::int32_t distance_exponent;
    double tol;
    // Answers of a fit.
    std::int32_t n_iter;
    std::int32_t converged;
    std::int32_t stop; // StopReason
    double shift;
};

// A cluster's sums of features and of its mass: two limbs (view.cuh) of each, of weighted rows for each part.
__host__ __device__ constexpr int group_width(int d, bool weighted)
{
    return parts_of(weighted) * (2 * d + 2);
}

// The sum of feature f, or of the mass (f = d), of the cluster that `sums` is of; width: group_width().
__host__ __device__ inline Int128 group_sum(const std::int64_t *sums, int d, int f, int width)
{
    return sum_of(sums, d + 1, f, width > 2 * d + 2);
}

inline std::int32_t most_clusters(const std::vector<GroupProblem> &problems)
{
    std::int32_t most = 0;
    for (const GroupProblem &problem : problems)
        most = std::max(most, problem.k);
    return most;
}

// Bytes of shared memory of a block that fits a problem of elements of so many bytes, and of one that assigns its rows
// with the fewest copies of its 32-bit sums.
std::size_t group_fit_bytes(int k, int d, bool weighted, std::size_t element);
std::size_t group_assign_bytes(std::int64_t k, std::int64_t d, bool weighted);

// Problems [0, n_problems) that come here, by index; empty unless it pays and
// memory allows.
std::vector<std::int64_t> eligible(const Data &data, const PgkmProblem *problems, std::int64_t n_problems);

// Each takes the problems that `which` names and returns those it has not served. seed: centroids (k x d of the rows'
// type) and k of each problem; fit: centroids, n_iter, converged and shift (the sum of squared drifts).
template <typename T>
std::vector<std::int64_t> seed_groups(Data &data, PgkmProblem *problems, const std::vector<std::int64_t> &which,
                                      const PgkmSeedParams &params);
template <typename T>
std::vector<std::int64_t> fit_groups(Data &data, PgkmProblem *problems, const std::vector<std::int64_t> &which,
                                     const PgkmFitParams &params);
// labels and distances (of the problem's rows), totals (k x d), masses, within and sizes (k), as far as each asks for
// them.
template <typename T>
void assign_groups(Data &data, const PgkmProblem *problems, const std::vector<std::int64_t> &which,
                   PgkmAssignment *assignments);

// One answer for all threads of a block: a cancelled call's blocks that have not begun have nothing to do.
__device__ inline bool group_cancelled(const volatile std::int32_t *cancel)
{
    return __syncthreads_or(*cancel != 0) != 0;
}

// The problems as one array on the device, with centroids and scales packed behind each other.
template <typename T>
struct Packed {
    std::vector<GroupProblem> problems;
    DeviceArray<GroupProblem> device_problems;
    DeviceArray<T> centroids;            // of all clusters x d
    DeviceArray<FeatureScale<T>> scales; // problems x d
    std::int64_t clusters = 0;

    Packed(Data &data, const PgkmProblem *from, const std::vector<std::int64_t> &which, bool with_centroids);
};

} // namespace pgkm::cuda
