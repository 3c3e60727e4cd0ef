// copy.cpp - large copies by several threads.
#include "numeric/copy.h"

#include <algorithm>
#include <cstring>

#include "numeric/processors.hpp"
#include "numeric/thread_pool.hpp"

void pgkm_copy(void *to, const void *from, size_t bytes)
{
    // A large page: each of the target's is touched for the first time by one thread alone.
    constexpr std::size_t chunk = std::size_t{2} << 20, most_threads = 8;
    const std::size_t threads = std::min(most_threads, bytes / (2 * chunk));
    if (threads < 2) {
        if (bytes > 0)
            std::memcpy(to, from, bytes);
        return;
    }
    // The first chunk ends where the target is aligned.
    const std::size_t first = chunk - reinterpret_cast<std::uintptr_t>(to) % chunk;
    const auto chunks = static_cast<std::int64_t>(1 + (bytes - first + chunk - 1) / chunk);
    pgkm::parallel_for(chunks, std::min<std::int64_t>(threads, pgkm::usable_processors()), [&](std::int64_t i, int) {
        const std::size_t begin = i == 0 ? 0 : first + (i - 1) * chunk;
        std::memcpy(static_cast<char *>(to) + begin, static_cast<const char *>(from) + begin,
                    std::min(first + i * chunk, bytes) - begin);
    });
}
