// lloyd.cpp - fit(): iterations of Lloyd until labels rest, the drift is small, or max_iter.
#include "cpu/operations.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/sums/cluster_sums.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/fit/new_centroids.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {
namespace {

template <typename T>
void fit_problem(const Data &data, ThreadPool &pool, PgkmProblem &problem, std::int64_t index,
                 const PgkmFitParams &params)
{
    const Rows<T> rows(data, pool, problem);
    const Context &context = data.context;
    problem.n_iter = 0;
    problem.converged = 0;
    problem.shift = 0.0;
    Buffer<std::int32_t> labels(data.context.budget, rows.n, -1);
    const auto assigner = make_assigner(rows, params.max_iter > 1 ? Purpose::iterations : Purpose::single);
    data.context.assignment.store(assigner->strategy(), std::memory_order_relaxed);
    std::vector<Buffer<std::int32_t>> fresh; // the new labels of a block, per worker
    for (int worker = 0; worker < pool.size(); ++worker)
        fresh.emplace_back(data.context.budget, assigner->rows_at_once());
    ClusterSums<T> cluster_sums(rows, problem);
    while (problem.n_iter < params.max_iter && problem.converged == 0) {
        context.poll();
        assigner->begin(static_cast<const T *>(problem.centroids));
        std::atomic<bool> changed = false;
        for_blocks(rows, assigner->rows_at_once(), [&](int worker, std::int64_t first, int count) {
            std::int32_t *old = labels.data() + first;
            std::int32_t *now = fresh[worker].data();
            std::copy_n(old, count, now);
            assigner->assign(worker, first, count, now, nullptr);
            if (cluster_sums.move(worker, first, count, old, now) == 0)
                return;
            changed.store(true, std::memory_order_relaxed);
            std::copy_n(now, count, old);
        });
        cluster_sums.combine();
        problem.shift = new_centroids(rows, problem, params.metric, cluster_sums, labels.data());
        ++problem.n_iter;
        problem.converged = !changed.load() || problem.shift <= problem.tol;
        if (&pool == &data.context.pool)
            context.report("iterating", index, problem.n_iter, problem.shift);
    }
}

} // namespace

void fit(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params)
{
    with_element(data.points, [&](auto element) {
        for_problems(data, problems, n_problems, [&](std::int64_t p, ThreadPool &pool) {
            fit_problem<decltype(element)>(data, pool, problems[p], p, *params);
        });
    });
    // Small ones run without the context's threads and so have told nothing yet.
    if (n_problems == 0)
        return;
    const PgkmProblem &last = problems[n_problems - 1];
    data.context.report("iterating", n_problems - 1, last.n_iter, last.shift);
}

} // namespace pgkm::cpu
