// bench.hpp - what the modes share: medians, and times by events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fit/device_problem.hpp"

namespace bench {

using namespace pgkm;
using namespace pgkm::cuda;

inline double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times.empty() ? -1.0 : times[times.size() / 2];
}

// Of a context on any device, without limits.
inline PgkmOpen plain_options()
{
    PgkmOpen open{};
    open.struct_size = sizeof open;
    open.device = -1;
    return open;
}

// Milliseconds of what body() enqueues in the context's stream, by events.
template <typename Body>
double time_ms(Context &context, Body &&body)
{
    cudaEvent_t from = nullptr, to = nullptr;
    float ms = 0.0f;
    check(cudaEventCreate(&from), "cudaEventCreate");
    check(cudaEventCreate(&to), "cudaEventCreate");
    check(cudaEventRecord(from, context.compute.get()), "cudaEventRecord");
    body();
    check(cudaEventRecord(to, context.compute.get()), "cudaEventRecord");
    context.wait(context.compute.get());
    check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return static_cast<double>(ms);
}

// The modes; each prints CSV with a heading. `which`: numbers of its shapes.
void stream();
void cancel(const std::vector<int> &which);
void relocation();
void groups();
void mixture(const std::vector<int> &which);
void moments();

} // namespace bench
