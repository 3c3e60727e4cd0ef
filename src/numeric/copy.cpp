// copy.cpp - large copies by several threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>

#include "numeric/copy.h"
#include "numeric/processors.hpp"
#include "numeric/signals.hpp"

namespace {

// Of the target's large pages each is touched for the first time by one thread alone.
constexpr std::size_t piece = std::size_t{2} << 20;
constexpr std::size_t most_threads = 8;

struct Copy {
    char *to;
    const char *from;
    std::size_t bytes;
    std::size_t first; // bytes of the first piece, after which the target is aligned
    std::atomic<std::size_t> next{0};
};

void work(Copy &copy)
{
    const std::size_t pieces = 1 + (copy.bytes - copy.first + piece - 1) / piece;
    for (std::size_t i; (i = copy.next.fetch_add(1)) < pieces;) {
        const std::size_t begin = i == 0 ? 0 : copy.first + (i - 1) * piece;
        const std::size_t end = std::min(copy.first + i * piece, copy.bytes);
        std::memcpy(copy.to + begin, copy.from + begin, end - begin);
    }
}

} // namespace

void pgkm_copy(void *to, const void *from, size_t bytes)
{
    const auto processors = static_cast<std::size_t>(pgkm::usable_processors());
    const std::size_t count = std::min({most_threads, processors, bytes / (2 * piece)});
    if (count < 2) {
        if (bytes > 0)
            std::memcpy(to, from, bytes);
        return;
    }
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(to) % piece;
    Copy copy{static_cast<char *>(to), static_cast<const char *>(from), bytes, piece - misaligned};
    std::array<std::thread, most_threads> threads;
    {
        const pgkm::SignalsBlocked guard;
        try {
            for (std::size_t i = 1; i < count; ++i)
                threads[i] = std::thread([&copy] { work(copy); });
        } catch (const std::system_error &) {
            // fewer do it too
        }
    }
    work(copy);
    for (std::thread &thread : threads)
        if (thread.joinable())
            thread.join();
}
