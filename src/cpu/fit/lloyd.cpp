// lloyd.cpp - fit(): iterations of Lloyd until labels rest, the drift is small, or max_iter.
#include "cpu/operations.hpp"

#include "backend/peers.hpp"
#include "cpu/fit/lloyd.hpp"
#include "cpu/fit/new_centroids.hpp"
#include "cpu/for_problems.hpp"

namespace pgkm::cpu {

template <typename T>
void iterate(Iteration<T> &iteration, PgkmProblem &problem, std::int64_t index, const PgkmFitParams &params,
             const std::int32_t *labels)
{
    const Rows<T> &rows = iteration.rows();
    problem.n_iter = 0;
    problem.converged = 0;
    problem.shift = 0.0;
    while (problem.n_iter < params.max_iter && problem.converged == 0) {
        const bool changed = iteration.run(static_cast<const T *>(problem.centroids));
        problem.shift = new_centroids(rows, problem, params.metric, iteration.sums(), labels);
        ++problem.n_iter;
        problem.converged = !any_of_peers(problem.peers, changed) || problem.shift <= problem.tol;
        if (&rows.pool == &rows.context.pool)
            rows.context.report("iterating", index, problem.n_iter, problem.shift);
    }
}

template void iterate(Iteration<float> &, PgkmProblem &, std::int64_t, const PgkmFitParams &, const std::int32_t *);
template void iterate(Iteration<double> &, PgkmProblem &, std::int64_t, const PgkmFitParams &, const std::int32_t *);

void fit(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params)
{
    if (data.points.element == PGKM_BIT)
        fit_bits(data, problems, n_problems, params);
    else
        with_element(data.points, [&](auto element) {
            for_problems(data, problems, n_problems, [&](std::int64_t p, ThreadPool &pool) {
                Buffer<std::int32_t> labels(data.context.budget, problems[p].n_rows, -1);
                const Purpose purpose = params->max_iter > 1 ? Purpose::iterations : Purpose::single;
                Iteration<decltype(element)> iteration(data, pool, problems[p], purpose, labels.data());
                iterate(iteration, problems[p], p, *params, labels.data());
            });
        });
    // Small ones run without the context's threads and so have told nothing yet.
    if (n_problems == 0)
        return;
    const PgkmProblem &last = problems[n_problems - 1];
    data.context.report("iterating", n_problems - 1, last.n_iter, last.shift);
}

} // namespace pgkm::cpu
