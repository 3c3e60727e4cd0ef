// lloyd.cpp - fit(): iterations of Lloyd until labels rest, the drift is small, or max_iter.
#include "cpu/operations.hpp"

#include "backend/peers.hpp"
#include "cpu/fit/iteration.hpp"
#include "cpu/fit/new_centroids.hpp"
#include "cpu/for_problems.hpp"

namespace pgkm::cpu {
namespace {

template <typename T>
void fit_problem(const Data &data, ThreadPool &pool, PgkmProblem &problem, std::int64_t index,
                 const PgkmFitParams &params)
{
    const Context &context = data.context;
    problem.n_iter = 0;
    problem.converged = 0;
    problem.shift = 0.0;
    Buffer<std::int32_t> labels(data.context.budget, problem.n_rows, -1);
    Iteration<T> iteration(data, pool, problem, params.max_iter > 1 ? Purpose::iterations : Purpose::single,
                           labels.data());
    while (problem.n_iter < params.max_iter && problem.converged == 0) {
        const bool changed = iteration.run(static_cast<const T *>(problem.centroids));
        problem.shift = new_centroids(iteration.rows(), problem, params.metric, iteration.sums(), labels.data());
        ++problem.n_iter;
        problem.converged = !any_of_peers(problem.peers, changed) || problem.shift <= problem.tol;
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
