// parallel.hpp - work of the host's that is shared out to threads: what many problems need before and after
// the device's part.
#pragma once

#include <algorithm>

#include "numeric/thread_pool.hpp"
#include "plugin/context.hpp"

namespace pgkm::cuda {

// Calls body(i) for every i below `count`, in any order, on several threads where there are at least
// `least` for each; polls between some of them. What a body throws is thrown here, after all have ended.
template <typename Body>
void for_each_of(const Context &context, std::int64_t count, std::int64_t least, Body &&body)
{
    constexpr std::int64_t most_threads = 8;
    constexpr std::int64_t chunk = 64; // calls between two looks at the host's cancel
    // Half of them: the others run what fills the rows of the next job.
    const std::int64_t threads = std::min<std::int64_t>(most_threads, context.most_threads / 2);
    parallel_for((count + chunk - 1) / chunk, std::min(threads, count / std::max<std::int64_t>(least, 1)),
                 [&](std::int64_t task, int) {
                     context.poll();
                     for (std::int64_t i = task * chunk; i < std::min((task + 1) * chunk, count); ++i)
                         body(i);
                 });
}

} // namespace pgkm::cuda
