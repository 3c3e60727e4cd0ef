// parallel.cu - threads that take pieces of the work until none is left.
#include "plugin/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "numeric/signals.hpp"

namespace pgkm::cuda {
namespace {

constexpr std::int64_t most_threads = 8;
constexpr std::int64_t piece = 64; // calls between two looks at the host's cancel

// What the threads share.
struct Work {
    const Context &context;
    const std::int64_t count;
    const std::function<void(std::int64_t)> &body;
    std::atomic<std::int64_t> next{0}; // that no thread has taken
    std::mutex mutex{};                // guards what follows
    std::exception_ptr failure{};      // the first

    void run()
    {
        try {
            for (std::int64_t first = next.fetch_add(piece); first < count; first = next.fetch_add(piece)) {
                context.poll();
                for (std::int64_t i = first; i < std::min(first + piece, count); ++i)
                    body(i);
            }
        } catch (...) {
            next = count; // the others stop
            const std::lock_guard<std::mutex> lock(mutex);
            if (failure == nullptr)
                failure = std::current_exception();
        }
    }
};

// Half of the processors: the others run what fills the rows of the next job.
std::int64_t threads_for(std::int64_t count, std::int64_t least)
{
    const std::int64_t processors = std::max(1u, std::thread::hardware_concurrency() / 2);
    return std::min({most_threads, processors, count / std::max<std::int64_t>(least, 1)});
}

} // namespace

void for_each_of(const Context &context, std::int64_t count, std::int64_t least,
                 const std::function<void(std::int64_t)> &body)
{
    Work work{context, count, body};
    const std::int64_t others = threads_for(count, least) - 1;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(std::max<std::int64_t>(others, 0)));
    try {
        const SignalsBlocked guard;
        for (std::int64_t i = 0; i < others; ++i)
            threads.emplace_back([&work] { work.run(); });
    } catch (const std::system_error &) {
        // Fewer threads than wished for: they do it all the same.
    }
    work.run();
    for (std::thread &thread : threads)
        thread.join();
    if (work.failure != nullptr)
        std::rethrow_exception(work.failure);
}

} // namespace pgkm::cuda
