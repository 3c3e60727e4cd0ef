// processors.hpp - how many threads this process may run at once.
#pragma once

#include "numeric/platform.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdint>
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

} // namespace pgkm
