// row_pass.hpp - how the rows of a problem are cut into tasks and chunks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/assigner.hpp"

namespace pgkm::cpu {

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

// Calls body(worker, first, count) for chunks that cover all rows, from all workers.
template <typename T, typename Body>
void for_chunks(const Rows<T> &rows, std::int64_t chunk, Body &&body)
{
    const std::int64_t chunks = (rows.n + chunk - 1) / chunk;
    // Enough tasks to balance, few enough that claiming them costs nothing.
    const std::int64_t per_task = std::max<std::int64_t>(1, chunks / (std::int64_t{rows.pool.size()} * 16));
    rows.pool.run((chunks + per_task - 1) / per_task, [&](std::int64_t task, int worker) {
        const std::int64_t end = std::min(rows.n, (task + 1) * per_task * chunk);
        for (std::int64_t first = task * per_task * chunk; first < end; first += chunk) {
            rows.context.poll();
            body(worker, first, static_cast<int>(std::min(chunk, end - first)));
        }
    });
}

} // namespace pgkm::cpu
