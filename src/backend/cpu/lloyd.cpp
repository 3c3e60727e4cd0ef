#include "backend/cpu/lloyd.hpp"

#include <algorithm>
#include <vector>

#include "backend/cpu/assigner.hpp"
#include "backend/cpu/cluster_sums.hpp"
#include "backend/cpu/for_problems.hpp"
#include "backend/cpu/pair_kernels.hpp"
#include "backend/cpu/row_pass.hpp"
#include "engine/contract.hpp"

namespace pgkm::cpu {
namespace {

// Buffers of one worker for the chunk in hand.
struct ChunkLabels {
    ChunkLabels(Budget &budget, int chunk) : labels(budget, static_cast<std::size_t>(chunk)) {}
    Buffer<std::int32_t> labels;
};

std::vector<ChunkLabels> chunk_labels(Context &context, const ThreadPool &pool, int chunk)
{
    std::vector<ChunkLabels> buffers;
    for (int worker = 0; worker < pool.size(); ++worker)
        buffers.emplace_back(context.budget, chunk);
    return buffers;
}

// Squared distances of all rows to the centroids they belong to.
template <typename T>
void own_distances(const Rows<T> &rows, const T *centroids, const std::int32_t *labels, double *distances)
{
    const PairKernels &kernels = pair_kernels(rows.context.strategy.instruction_set);
    for_chunks(rows, 64, [&](int, std::int64_t first, int count) {
        const T *x[64], *c[64];
        for (int i = 0; i < count; ++i) {
            x[i] = rows.values + (first + i) * rows.d;
            c[i] = centroids + std::int64_t{labels[first + i]} * rows.d;
        }
        kernels.distances(x, c, count, rows.d, distances + first);
    });
}

// update_centroids() with the clusters spread over the threads. Each is updated as a problem of its
// own, so the arithmetic is the engine's; their shifts are added in ascending order.
template <typename T>
double update_in_parallel(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, const Sums &sums)
{
    const std::int64_t d = rows.d;
    const std::int64_t per_task = std::max<std::int64_t>(1, 8192 / d);
    const std::int64_t tasks = (rows.k + per_task - 1) / per_task;
    if (tasks == 1)
        return update_centroids<T>(problem, rows.d, metric, sums);
    Buffer<double> shifts(rows.context.budget, static_cast<std::size_t>(rows.k));
    rows.pool.run(tasks, [&](std::int64_t task, int) {
        rows.context.poll();
        Sums one;
        PgkmProblem cluster = problem;
        cluster.k = 1;
        const std::int64_t end = std::min<std::int64_t>(rows.k, (task + 1) * per_task);
        for (std::int64_t j = task * per_task; j < end; ++j) {
            cluster.centroids = static_cast<T *>(problem.centroids) + j * d;
            one.totals.assign(sums.totals.begin() + j * d, sums.totals.begin() + (j + 1) * d);
            one.masses.assign(1, sums.masses[static_cast<std::size_t>(j)]);
            shifts[static_cast<std::size_t>(j)] = update_centroids<T>(cluster, rows.d, metric, one);
        }
    });
    double shift = 0.0;
    for (const double each : shifts)
        shift += each;
    return shift;
}

// Gives empty clusters their rows, on a copy: `assigned` goes on to follow the labels.
template <typename T>
Sums relocated(const Data &data, const Rows<T> &rows, const PgkmProblem &problem, const std::int32_t *labels,
               const Sums &assigned)
{
    const Lease lease(rows.context.budget,
                      assigned.totals.size() * sizeof(Int128) + static_cast<std::uint64_t>(rows.n) * 16);
    Buffer<double> distances(rows.context.budget, static_cast<std::size_t>(rows.n));
    own_distances(rows, static_cast<const T *>(problem.centroids), labels, distances.data());
    Sums sums = assigned;
    relocate_empty_clusters<T>(data.points, problem, labels, distances.data(), sums);
    return sums;
}

template <typename T>
void fit_problem(const Data &data, ThreadPool &pool, PgkmProblem &problem, std::int64_t index,
                 const PgkmFitParams &params)
{
    const Rows<T> rows(data, pool, problem);
    const Context &context = data.context;
    problem.n_iter = 0;
    problem.converged = 0;
    problem.shift = 0.0;
    Buffer<std::int32_t> labels(data.context.budget, static_cast<std::size_t>(rows.n), -1);
    const auto assigner = make_assigner(rows, params.max_iter > 1 ? Purpose::iterations : Purpose::single);
    std::vector<ChunkLabels> fresh = chunk_labels(data.context, pool, assigner->chunk());
    ClusterSums<T> cluster_sums(rows, problem);
    while (problem.n_iter < params.max_iter && problem.converged == 0) {
        context.poll();
        assigner->begin(static_cast<const T *>(problem.centroids));
        std::atomic<bool> changed = false;
        for_chunks(rows, assigner->chunk(), [&](int worker, std::int64_t first, int count) {
            std::int32_t *old = labels.data() + first;
            std::int32_t *now = fresh[static_cast<std::size_t>(worker)].labels.data();
            std::copy_n(old, count, now);
            assigner->assign(worker, first, count, now, nullptr);
            if (cluster_sums.move(worker, first, count, old, now) == 0)
                return;
            changed.store(true, std::memory_order_relaxed);
            std::copy_n(now, count, old);
        });
        const Sums &sums = cluster_sums.combine();
        problem.shift =
            has_empty_cluster(sums)
                ? update_in_parallel(rows, problem, params.metric, relocated(data, rows, problem, labels.data(), sums))
                : update_in_parallel(rows, problem, params.metric, sums);
        ++problem.n_iter;
        problem.converged = !changed.load() || problem.shift <= problem.tol;
        if (&pool == &data.context.pool)
            context.report("iterating", index, problem.n_iter, problem.shift);
    }
}

// Per-cluster sums of squares and row counts of one worker.
struct Within {
    Within(Budget &budget, std::int32_t k)
        : hi(budget, static_cast<std::size_t>(k), 0), lo(budget, static_cast<std::size_t>(k), 0),
          sizes(budget, static_cast<std::size_t>(k), 0), total(budget, static_cast<std::size_t>(k), 0)
    {
    }

    template <typename T>
    void add(const Rows<T> &rows, std::int64_t first, int count, const std::int32_t *labels, const double *distances,
             double scale)
    {
        if (used + count > partial_sum_length)
            flush();
        used += count;
        for (int i = 0; i < count; ++i) {
            const auto cluster = static_cast<std::size_t>(labels[i]);
            ++sizes[cluster];
            if (distances == nullptr)
                continue;
            const Limbs limbs =
                quantise_square(rows.weights == nullptr ? distances[i] : rows.weights[first + i] * distances[i], scale);
            hi[cluster] += limbs.hi;
            lo[cluster] += limbs.lo;
        }
    }
    void flush()
    {
        for (std::size_t j = 0; j < total.size(); ++j)
            total[j] += join_limbs(std::exchange(hi[j], 0), std::exchange(lo[j], 0));
        used = 0;
    }

    Buffer<std::int64_t> hi, lo, sizes;
    Buffer<Int128> total;
    std::int64_t used = 0;
};

void store_within(std::vector<Within> &parts, PgkmAssignment &out, std::int32_t k)
{
    for (Within &part : parts)
        part.flush();
    for (std::int32_t j = 0; j < k; ++j) {
        Int128 total = 0;
        std::int64_t size = 0;
        for (const Within &part : parts) {
            total += part.total[static_cast<std::size_t>(j)];
            size += part.sizes[static_cast<std::size_t>(j)];
        }
        if (out.within != nullptr)
            out.within[j] = split(total);
        if (out.sizes != nullptr)
            out.sizes[j] = size;
    }
}

template <typename T>
void store_sums(const Sums &sums, PgkmAssignment &out)
{
    if (out.totals != nullptr)
        std::transform(sums.totals.begin(), sums.totals.end(), out.totals, split);
    if (out.masses != nullptr)
        std::transform(sums.masses.begin(), sums.masses.end(), out.masses, split);
}

template <typename T>
void assign_problem(const Data &data, ThreadPool &pool, const PgkmProblem &problem, PgkmAssignment &out)
{
    const Rows<T> rows(data, pool, problem);
    Budget &budget = data.context.budget;
    const bool want_sums = out.totals != nullptr || out.masses != nullptr;
    const bool want_within = out.within != nullptr || out.sizes != nullptr;
    const bool want_distances = out.distances != nullptr || out.within != nullptr;
    const auto assigner = make_assigner(rows, Purpose::single);
    const int chunk = assigner->chunk();
    std::vector<ChunkLabels> fresh = chunk_labels(data.context, pool, chunk);
    std::vector<Buffer<double>> distances;
    std::vector<Within> within;
    for (int worker = 0; worker < pool.size(); ++worker) {
        distances.emplace_back(budget, want_distances ? static_cast<std::size_t>(chunk) : 0);
        within.emplace_back(budget, want_within ? rows.k : 0);
    }
    const Buffer<std::int32_t> none(budget, static_cast<std::size_t>(chunk), -1);
    std::unique_ptr<ClusterSums<T>> sums;
    if (want_sums)
        sums = std::make_unique<ClusterSums<T>>(rows, problem);
    const double scale = out.within == nullptr ? 1.0 : power_of_two(problem.distance_exponent);
    assigner->begin(static_cast<const T *>(problem.centroids));
    for_chunks(rows, chunk, [&](int worker, std::int64_t first, int count) {
        const auto w = static_cast<std::size_t>(worker);
        std::int32_t *now = out.labels != nullptr ? out.labels + first : fresh[w].labels.data();
        double *squares = out.distances != nullptr ? out.distances + first
                          : want_distances         ? distances[w].data()
                                                   : nullptr;
        std::fill_n(now, count, -1);
        assigner->assign(worker, first, count, now, squares);
        if (want_sums)
            sums->move(worker, first, count, none.data(), now);
        if (want_within)
            within[w].add(rows, first, count, now, out.within == nullptr ? nullptr : squares, scale);
    });
    if (want_sums)
        store_sums<T>(sums->combine(), out);
    if (want_within)
        store_within(within, out, rows.k);
}

} // namespace

void fit(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams &params)
{
    with_element(data.points, [&](auto element) {
        for_problems(data, problems, n_problems, [&](std::int64_t p, ThreadPool &pool) {
            fit_problem<decltype(element)>(data, pool, problems[p], p, params);
        });
    });
}

void assign(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments)
{
    with_element(data.points, [&](auto element) {
        for_problems(data, problems, n_problems, [&](std::int64_t p, ThreadPool &pool) {
            assign_problem<decltype(element)>(data, pool, problems[p], assignments[p]);
        });
    });
}

} // namespace pgkm::cpu
