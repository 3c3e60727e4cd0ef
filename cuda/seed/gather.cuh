// gather.cuh (seed) - picks values by number: to[i] = from[at[i]].
//
// Threads: a value a thread. `to` may be `at`: each thread reads its number before it writes in its place.
#pragma once

#include <cstdint>

#include "plan/stages.hpp"
#include "plugin/context.hpp"

namespace pgkm::cuda {

inline constexpr int gather_threads = 256;

template <typename From, typename At, typename To>
__global__ void __launch_bounds__(gather_threads) gather_kernel(const From *from, const At *at, std::int64_t n, To *to)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * gather_threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * gather_threads + threadIdx.x; i < n; i += stride)
        to[i] = from[at[i]];
}

template <typename From, typename At, typename To>
void gather(const Context &context, const From *from, const At *at, std::int64_t n, To *to)
{
    enqueue(gather_kernel<From, At, To>, blocks_for(n, gather_threads, context.facts.multiprocessors * 16),
            gather_threads, 0, context.compute.get(), from, at, n, to);
}

} // namespace pgkm::cuda
