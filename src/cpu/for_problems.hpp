// for_problems.hpp - spreads many problems over the threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cpu/context.hpp"
#include "numeric/error.hpp"

namespace pgkm::cpu {

// Multiply-adds of an iteration that are not worth waking a thread.
inline constexpr double small_work = 1 << 18;

// Runs body(task) of tasks side by side. One that finds no room beside the others runs again when they have ended: so
// whether memory allows it depends on the task alone.
template <typename Body>
void side_by_side(Context &context, std::int64_t tasks, Body &&body)
{
    std::mutex mutex;
    std::vector<std::int64_t> again;
    context.pool.run(tasks, [&](std::int64_t task, int) {
        context.poll();
        try {
            body(task);
        } catch (const Error &error) {
            if (error.status() != PGKM_LIMIT)
                throw;
            const std::lock_guard lock(mutex);
            again.push_back(task);
        }
    });
    for (const std::int64_t task : again) {
        context.poll();
        body(task);
    }
}

// Calls body(p, pool) for every problem p, of work(p) multiply-adds (an iteration): one by one with
// the context's threads inside for those that are large, and side by side with one thread each
// for the others. Small ones gain nothing from threads inside (an iteration is over before they
// wake), and there the number of problems gives the balance. Results do not depend on it. A body of a small one may run
// again after Error(PGKM_LIMIT).
template <typename Work, typename Body>
void for_problems(Data &data, std::int64_t count, Work &&work, Body &&body)
{
    ThreadPool &pool = data.context.pool;
    double total = 0.0;
    for (std::int64_t p = 0; p < count; ++p)
        total += work(p);
    // Larger than a fair share among the threads' tasks: it would be the one all wait for.
    const double large = std::max(small_work, total / (4.0 * pool.size()));
    std::vector<std::int64_t> small;
    ThreadPool alone(1);
    for (std::int64_t p = 0; p < count; ++p) {
        if (pool.size() == 1 || work(p) >= large)
            body(p, pool);
        else if (count == 1)
            body(p, alone);
        else
            small.push_back(p);
    }
    // The longest first, or the last task would be alone at the end.
    std::stable_sort(small.begin(), small.end(), [&](std::int64_t a, std::int64_t b) { return work(a) > work(b); });
    side_by_side(data.context, static_cast<std::int64_t>(small.size()), [&](std::int64_t task) {
        ThreadPool own(1);
        body(small[task], own);
    });
}

// The same for problems of assignment to k centroids, which a body that is left by an exception finds again as they
// were.
template <typename Body>
void for_problems(Data &data, const PgkmProblem *problems, std::int64_t count, Body &&body)
{
    const std::size_t row = data.points.d * (data.points.element == PGKM_FLOAT64 ? sizeof(double) : sizeof(float));
    const auto work = [&](std::int64_t p) {
        return static_cast<double>(problems[p].n_rows) * problems[p].k * data.points.d;
    };
    for_problems(data, count, work, [&](std::int64_t p, ThreadPool &pool) {
        if (&pool == &data.context.pool)
            return body(p, pool);
        auto *centroids = static_cast<std::byte *>(problems[p].centroids);
        Buffer<std::byte> before(data.context.budget, problems[p].k * row);
        std::copy_n(centroids, before.size(), before.data());
        try {
            body(p, pool);
        } catch (const Error &) {
            std::copy(before.begin(), before.end(), centroids);
            throw;
        }
    });
}

} // namespace pgkm::cpu
