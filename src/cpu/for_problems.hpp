// for_problems.hpp - spreads many problems over the threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/context.hpp"

namespace pgkm::cpu {

// Multiply-adds of an iteration that are not worth waking a thread.
inline constexpr double small_work = 1 << 18;

// Calls body(p, pool) for every problem p, of work(p) multiply-adds (an iteration): one by one with
// the context's threads inside for those that are large, and side by side with one thread each
// for the others. Small ones gain nothing from threads inside (an iteration is over before they
// wake), and there the number of problems gives the balance. Results do not depend on it.
template <typename Work, typename Body>
void for_problems(Data &data, std::int64_t count, Work &&work, Body &&body)
{
    ThreadPool &pool = data.context.pool;
    double total = 0.0;
    for (std::int64_t p = 0; p < count; ++p)
        total += work(p);
    // Larger than a fair share among the threads' tasks: it would be the one all wait for.
    const double large = std::max(small_work, total / (4.0 * pool.size()));
    std::vector<std::int64_t> side_by_side;
    ThreadPool alone(1);
    for (std::int64_t p = 0; p < count; ++p) {
        if (pool.size() == 1 || work(p) >= large)
            body(p, pool);
        else if (count == 1)
            body(p, alone);
        else
            side_by_side.push_back(p);
    }
    // The longest first, or the last task would be alone at the end.
    std::stable_sort(side_by_side.begin(), side_by_side.end(),
                     [&](std::int64_t a, std::int64_t b) { return work(a) > work(b); });
    pool.run(static_cast<std::int64_t>(side_by_side.size()), [&](std::int64_t task, int) {
        data.context.poll();
        ThreadPool own(1);
        body(side_by_side[task], own);
    });
}

// The same for problems of assignment to k centroids.
template <typename Body>
void for_problems(Data &data, const PgkmProblem *problems, std::int64_t count, Body &&body)
{
    for_problems(
        data, count,
        [&](std::int64_t p) { return static_cast<double>(problems[p].n_rows) * problems[p].k * data.points.d; }, body);
}

} // namespace pgkm::cpu
