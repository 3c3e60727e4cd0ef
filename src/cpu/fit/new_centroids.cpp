// new_centroids.cpp - new centroids from sums, after empty clusters have got the rows that lie farthest.
#include "cpu/fit/new_centroids.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "backend/peers.hpp"
#include "cpu/assign/own_distances.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t sums_per_task = 8192, clusters_per_task = 64;

// The arithmetic of update_centroids(), with the shifts of some clusters at a time. They are added in ascending order,
// as there.
template <typename T>
double update(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, const Int128 *totals,
              const Int128 *masses)
{
    const std::int64_t d = rows.d, per_task = std::clamp<std::int64_t>(sums_per_task / d, 1, clusters_per_task);
    const ExactKernels &kernels = exact_kernels(rows.context.instruction_set);
    auto *centroids = static_cast<T *>(problem.centroids);
    Buffer<double> shifts(rows.context.budget, rows.k, 0.0);
    rows.for_ranges(rows.k, per_task, [&](std::int64_t first, std::int64_t last, int) {
        Buffer<T> fresh(rows.context.budget, (last - first) * d);
        const T *from[clusters_per_task], *to[clusters_per_task];
        double squares[clusters_per_task];
        std::int64_t moved = 0, cluster[clusters_per_task];
        for (std::int64_t j = first; j < last; ++j) {
            T *own = fresh.data() + moved * d;
            if (!new_centroid(problem, rows.d, metric, totals + j * d, masses[j], own))
                continue;
            from[moved] = centroids + j * d;
            to[moved] = own;
            cluster[moved++] = j;
        }
        kernels.pairs(to, from, moved, rows.d, squares);
        for (std::int64_t i = 0; i < moved; ++i) {
            shifts[cluster[i]] = squares[i];
            std::copy_n(to[i], d, centroids + cluster[i] * d);
        }
    });
    double shift = 0.0;
    for (const double each : shifts)
        shift += each;
    return shift;
}

// The `most` first of all rows at some distance, in the order `before`.
template <typename T>
std::vector<FarRow> farthest_rows(const Rows<T> &rows, const PgkmProblem &problem, const std::int32_t *labels,
                                  std::size_t most, const FarOrder<T> &before)
{
    constexpr int batch = 64;
    const auto *centroids = static_cast<const T *>(problem.centroids);
    std::vector<FirstFarRows<T>> first_rows(rows.pool.size(), FirstFarRows<T>(before, most)); // of each worker
    for_blocks(rows, batch, [&](int worker, std::int64_t first, int count) {
        double squares[batch];
        own_distances(rows, centroids, first, count, labels + first, squares);
        for (int i = 0; i < count; ++i)
            first_rows[worker].add({squares[i], first + i, labels[first + i], rows.copies(first + i)});
    });
    std::vector<FarRow> all;
    for (const FirstFarRows<T> &own : first_rows)
        all.insert(all.end(), own.rows().begin(), own.rows().end());
    std::sort(all.begin(), all.end(), before);
    all.resize(std::min(all.size(), most));
    return all;
}

// Gives every empty cluster its row.
template <typename T>
void relocate(const Rows<T> &rows, const PgkmProblem &problem, const std::int32_t *labels, Sums &sums)
{
    PgkmProblem local = problem; // whose rows are `rows`
    local.first_row = 0;
    const PgkmPoints points = {rows.values, sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, rows.n, rows.d, rows.weights};
    std::optional<Reservation> for_rows;
    const auto farthest = [&](std::size_t most) {
        for_rows.reset();
        for_rows.emplace(rows.context.budget, most * static_cast<std::uint64_t>(rows.pool.size() + 1) * sizeof(FarRow));
        return farthest_rows(rows, problem, labels, most, FarOrder<T>{points, 0});
    };
    relocate_by_farthest_of_peers<T>(points, local, sums.masses, farthest, move_within<T>(sums));
}

} // namespace

template <typename T>
double new_centroids(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, const ClusterSums<T> &sums,
                     const std::int32_t *labels)
{
    if (problem.peers == nullptr && !sums.has_empty())
        return update(rows, problem, metric, sums.totals().data(), sums.masses().data());
    const Reservation for_copies(rows.context.budget, 2 * sums.totals().size() * sizeof(Int128));
    Sums all = sums.copy();
    add_over(problem.peers, all);
    if (has_empty_cluster(all))
        relocate(rows, problem, labels, all);
    return update(rows, problem, metric, all.totals.data(), all.masses.data());
}

template double new_centroids(const Rows<float> &, const PgkmProblem &, PgkmMetric, const ClusterSums<float> &,
                              const std::int32_t *);
template double new_centroids(const Rows<double> &, const PgkmProblem &, PgkmMetric, const ClusterSums<double> &,
                              const std::int32_t *);

} // namespace pgkm::cpu
