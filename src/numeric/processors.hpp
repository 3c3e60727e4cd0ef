// processors.hpp - how many threads this process may run at once, and how many it has been granted.
#pragma once

#include "numeric/platform.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>

namespace pgkm {

// Logical processors that the process may run on: its affinity mask (taskset, a container's
// cpuset) and not the machine's size, which would put several threads on one processor.
inline std::int32_t usable_processors()
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return std::max(1, CPU_COUNT(&set));
#endif
    return static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
}

// The most threads that compute side by side for whoever makes a ThreadPool; 0: as many as usable_processors(). For the
// owner of the process to set. Without that there is no limit.
inline std::atomic<std::int32_t> thread_limit{std::numeric_limits<std::int32_t>::max()};

inline std::int32_t granted_threads()
{
    const std::int32_t limit = thread_limit.load(std::memory_order_relaxed);
    return limit == 0 ? usable_processors() : limit;
}

} // namespace pgkm
