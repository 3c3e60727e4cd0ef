// watched_job.hpp - jobs in the calling thread, whose processor time tells what they do: the machine's load does
// not show in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "engine/job/algorithm.hpp"

namespace pgkm::test {

// What sanitizers add to a program's time says nothing of the program's own: there the same runs look for faults alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool judges_time = false;
#else
inline constexpr bool judges_time = true;
#endif

// Of the calling thread.
inline double cpu_seconds()
{
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct JobShape {
    std::int64_t n;
    std::int32_t d;
    std::int64_t k;
};

inline std::vector<float> noise(const JobShape &shape)
{
    std::vector<float> rows(static_cast<std::size_t>(shape.n * shape.d));
    std::uint32_t bits = 1;
    for (float &value : rows) {
        bits = bits * 1664525 + 1013904223;
        value = static_cast<float>(bits >> 8) * 0x1p-24F;
    }
    return rows;
}

// Of rows that live on, for one thread of the CPU backend: the caller's.
inline PgkmRequest request_for(PgkmAlgorithm algorithm, const std::vector<float> &rows, const JobShape &shape)
{
    PgkmRequest request = {};
    request.algorithm = algorithm;
    request.k = algorithm == PGKM_PCA ? 0 : shape.k;
    request.points = {rows.data(), PGKM_FLOAT32, shape.n, shape.d, nullptr};
    request.settings.backend = PGKM_BACKEND_CPU;
    request.settings.cpu_threads = 1;
    return request;
}

inline void run(const PgkmRequest &request, Monitor &monitor)
{
    run_request(algorithm_of(request), request, monitor);
}

} // namespace pgkm::test
