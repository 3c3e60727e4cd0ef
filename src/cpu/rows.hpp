// rows.hpp - the rows of a problem, and how they are cut into tasks and blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/context.hpp"

namespace pgkm::cpu {

// The rows of one problem, and who works on them.
template <typename T>
struct Rows {
    Context &context;
    ThreadPool &pool; // the context's, or one without threads where problems run
                      // side by side
    const T *values;
    const double *weights;                 // NULL or n
    const std::uint16_t *counts = nullptr; // NULL or n: how many equal rows each stands for (cpu/entries)
    std::int64_t n;
    std::int32_t d;
    std::int32_t k;
    const Data *data = nullptr; // where they are loaded, if what is made of them may be kept there

    Rows(Context &owner, ThreadPool &workers, const T *first, std::int64_t rows, std::int32_t features,
         std::int32_t clusters)
        : context(owner), pool(workers), values(first), weights(nullptr), n(rows), d(features), k(clusters)
    {
    }

    Rows(const Data &loaded, ThreadPool &workers, const PgkmProblem &problem)
        : context(loaded.context), pool(workers),
          values(static_cast<const T *>(loaded.points.values) + problem.first_row * loaded.points.d),
          weights(loaded.points.weights == nullptr ? nullptr : loaded.points.weights + problem.first_row),
          counts(loaded.counts == nullptr ? nullptr : loaded.counts + problem.first_row), n(problem.n_rows),
          d(loaded.points.d), k(problem.k), data(&loaded)
    {
    }

    // The same rows for other workers.
    Rows(const Rows &other, ThreadPool &workers)
        : context(other.context), pool(workers), values(other.values), weights(other.weights), counts(other.counts),
          n(other.n), d(other.d), k(other.k), data(other.data)
    {
    }

    const T *row(std::int64_t i) const { return values + i * d; }
    std::int32_t copies(std::int64_t i) const { return counts == nullptr ? 1 : counts[i]; }

    // Calls body(first, last, worker) for ranges of at most `size` that cover [0, count), from all workers.
    // Polls before each.
    template <typename Body>
    void for_ranges(std::int64_t count, std::int64_t size, Body &&body) const
    {
        pool.run((count + size - 1) / size, [&](std::int64_t task, int worker) {
            context.poll();
            body(task * size, std::min(count, (task + 1) * size), worker);
        });
    }
};

// Multiply-adds between two looks at the cancel flag: well under 10 ms even where each is a function
// call.
inline constexpr std::int64_t work_per_poll = std::int64_t{1} << 20;

// Rows that can be assigned and then summed while they are in cache.
template <typename T>
int cached_rows(const Rows<T> &rows)
{
    constexpr std::int64_t bytes = 256 * 1024;
    const std::int64_t fit = bytes / (std::int64_t{rows.d} * static_cast<std::int64_t>(sizeof(T)));
    return static_cast<int>(std::clamp<std::int64_t>(fit / 64 * 64, 64, 4096));
}

// Calls body(worker, first, count) for blocks of at most `block` rows that cover all rows, from all workers.
template <typename T, typename Body>
void for_blocks(const Rows<T> &rows, std::int64_t block, Body &&body)
{
    const std::int64_t blocks = (rows.n + block - 1) / block;
    // Enough tasks to balance, few enough that claiming them costs nothing.
    const std::int64_t per_task = std::max<std::int64_t>(1, blocks / (std::int64_t{rows.pool.size()} * 16));
    rows.for_ranges(rows.n, per_task * block, [&](std::int64_t first, std::int64_t last, int worker) {
        for (; first < last; first += block) {
            rows.context.poll();
            body(worker, first, static_cast<int>(std::min(block, last - first)));
        }
    });
}

} // namespace pgkm::cpu
