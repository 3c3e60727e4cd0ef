#include "backend/cpu/new_centroids.hpp"

#include <algorithm>
#include <vector>

#include "backend/cpu/pair_kernels.hpp"
#include "backend/cpu/row_pass.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t sums_per_task = 8192;

// Each cluster is updated as a problem of its own, so the arithmetic is the engine's; `load` gives
// the sums of cluster j. Shifts are added in ascending order, as there.
template <typename T, typename Load>
double update(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, Load &&load)
{
    const std::int64_t per_task = std::max<std::int64_t>(1, sums_per_task / rows.d);
    Buffer<double> shifts(rows.context.budget, static_cast<std::size_t>(rows.k));
    rows.pool.run((rows.k + per_task - 1) / per_task, [&](std::int64_t task, int) {
        rows.context.poll();
        Sums sums;
        PgkmProblem cluster = problem;
        cluster.k = 1;
        const std::int64_t end = std::min<std::int64_t>(rows.k, (task + 1) * per_task);
        for (std::int64_t j = task * per_task; j < end; ++j) {
            cluster.centroids = static_cast<T *>(problem.centroids) + j * rows.d;
            load(j, sums);
            shifts[static_cast<std::size_t>(j)] = update_centroids<T>(cluster, rows.d, metric, sums);
        }
    });
    double shift = 0.0;
    for (const double each : shifts)
        shift += each;
    return shift;
}

struct Candidate {
    double square; // to the centroid the row was assigned to
    std::int64_t row;
    bool operator<(const Candidate &other) const // the farther comes first, the lower row on a tie
    {
        return square != other.square ? square > other.square : row < other.row;
    }
};

// The `most` first candidates of all rows at some distance, in order of rows.
template <typename T>
std::vector<Candidate> farthest_rows(const Rows<T> &rows, const PgkmProblem &problem, const std::int32_t *labels,
                                     std::size_t most)
{
    constexpr int batch = 64;
    const PairKernels &kernels = pair_kernels(rows.context.strategy.instruction_set);
    const auto *centroids = static_cast<const T *>(problem.centroids);
    // Per worker a heap with the last of its candidates on top.
    std::vector<std::vector<Candidate>> heaps(static_cast<std::size_t>(rows.pool.size()));
    for_chunks(rows, batch, [&](int worker, std::int64_t first, int count) {
        const T *x[batch] = {}, *c[batch] = {};
        double squares[batch];
        std::vector<Candidate> &heap = heaps[static_cast<std::size_t>(worker)];
        for (int i = 0; i < count; ++i) {
            x[i] = rows.values + (first + i) * rows.d;
            c[i] = centroids + std::int64_t{labels[first + i]} * rows.d;
        }
        kernels.distances(x, c, count, rows.d, squares);
        for (int i = 0; i < count; ++i) {
            const Candidate candidate = {squares[i], first + i};
            if (squares[i] == 0.0 || (heap.size() == most && !(candidate < heap.front())))
                continue;
            if (heap.size() == most) {
                std::pop_heap(heap.begin(), heap.end());
                heap.pop_back();
            }
            heap.push_back(candidate);
            std::push_heap(heap.begin(), heap.end());
        }
    });
    std::vector<Candidate> all;
    for (const std::vector<Candidate> &heap : heaps)
        all.insert(all.end(), heap.begin(), heap.end());
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), most));
    std::sort(all.begin(), all.end(), [](const Candidate &a, const Candidate &b) { return a.row < b.row; });
    return all;
}

// Runs the engine's relocation on the candidates alone, as a problem of so many rows.
template <typename T>
void relocate(const Rows<T> &rows, const PgkmProblem &problem, const std::int32_t *labels,
              const std::vector<Candidate> &candidates, Sums &sums)
{
    std::vector<T> values;
    std::vector<double> weights, squares;
    std::vector<std::int32_t> old;
    for (const Candidate &candidate : candidates) {
        const T *row = rows.values + candidate.row * rows.d;
        values.insert(values.end(), row, row + rows.d);
        weights.push_back(rows.weights == nullptr ? 1.0 : rows.weights[candidate.row]);
        squares.push_back(candidate.square);
        old.push_back(labels[candidate.row]);
    }
    PgkmProblem few = problem;
    few.first_row = 0;
    few.n_rows = static_cast<std::int64_t>(candidates.size());
    const PgkmPoints points = {values.data(), sizeof(T) == 4 ? PGKM_FLOAT32 : PGKM_FLOAT64, few.n_rows, rows.d,
                               rows.weights == nullptr ? nullptr : weights.data()};
    relocate_empty_clusters<T>(points, few, old.data(), squares.data(), sums);
}

// The sums with every empty cluster given its row. Few rows are taken, so few are looked at; should
// too many of them be unfit (their clusters would be left empty), more are.
template <typename T>
Sums relocated(const Rows<T> &rows, const PgkmProblem &problem, const ClusterSums<T> &assigned,
               const std::int32_t *labels)
{
    const auto empty = std::count(assigned.masses().begin(), assigned.masses().end(), 0);
    std::size_t most = 64 + 4 * static_cast<std::size_t>(empty);
    for (;; most *= 8) {
        const Lease lease(rows.context.budget,
                          most * static_cast<std::uint64_t>(rows.pool.size() + 1) *
                              (sizeof(Candidate) + static_cast<std::uint64_t>(rows.d) * sizeof(T)));
        const std::vector<Candidate> candidates = farthest_rows(rows, problem, labels, most);
        Sums sums;
        assigned.copy(0, rows.k, sums);
        relocate(rows, problem, labels, candidates, sums);
        if (candidates.size() < most || !has_empty_cluster(sums))
            return sums;
    }
}

} // namespace

template <typename T>
double new_centroids(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, const ClusterSums<T> &sums,
                     const std::int32_t *labels)
{
    if (!sums.has_empty())
        return update(rows, problem, metric, [&](std::int64_t j, Sums &one) { sums.copy(j, 1, one); });
    const Lease lease(rows.context.budget, sums.totals().size() * sizeof(Int128));
    const Sums all = relocated(rows, problem, sums, labels);
    return update(rows, problem, metric, [&](std::int64_t j, Sums &one) {
        one.totals.assign(all.totals.begin() + j * rows.d, all.totals.begin() + (j + 1) * rows.d);
        one.masses.assign(1, all.masses[static_cast<std::size_t>(j)]);
    });
}

template double new_centroids(const Rows<float> &, const PgkmProblem &, PgkmMetric, const ClusterSums<float> &,
                              const std::int32_t *);
template double new_centroids(const Rows<double> &, const PgkmProblem &, PgkmMetric, const ClusterSums<double> &,
                              const std::int32_t *);

} // namespace pgkm::cpu
