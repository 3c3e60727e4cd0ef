// parallel.cu - the host's work for many problems, shared out to threads.
#include "plugin/parallel.hpp"

#include <algorithm>

#include "numeric/thread_pool.hpp"

namespace pgkm::cuda {

void for_each_of(const Context &context, std::int64_t count, std::int64_t least,
                 const std::function<void(std::int64_t)> &body)
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
