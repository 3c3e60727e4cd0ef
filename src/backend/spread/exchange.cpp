// exchange.cpp - a meeting of threads that hand pieces of memory to one another.
//
// No part is more than one call ahead of another: it leaves a call when all have come to it. So the number of all
// arrivals tells whether all have come, and what a part gave is read by nobody when it gives the second time after.
#include "backend/spread/exchange.hpp"

#include <chrono>
#include <new>
#include <thread>

namespace pgkm::spread {

Exchange::Exchange(std::int32_t parts, std::int64_t n_rows, const PgkmHost &host, const std::atomic<bool> &failed)
    : host_(host), failed_(failed), parts_(static_cast<std::size_t>(parts))
{
    for (std::vector<PgkmPiece> &pieces : pieces_)
        pieces.resize(parts_.size());
    for (std::int32_t i = 0; i < parts; ++i) {
        Part &part = parts_[static_cast<std::size_t>(i)];
        part.owner = this;
        part.peers = {i, parts, n_rows, give, &part};
    }
}

const PgkmPiece *Exchange::give(void *arg, const void *own, std::uint64_t bytes) noexcept
{
    Part &part = *static_cast<Part *>(arg);
    Exchange &self = *part.owner;
    const std::size_t turn = part.calls++ % 2;
    try {
        const char *const from = static_cast<const char *>(own);
        part.own[turn].assign(from, from + bytes);
    } catch (const std::bad_alloc &) {
        self.out_of_memory_.store(true); // this part fails, and the others learn of that
        return nullptr;
    }
    self.pieces_[turn][static_cast<std::size_t>(part.peers.part)] = {part.own[turn].data(), bytes};
    self.arrivals_.fetch_add(1);
    return self.wait_for(part.calls * self.parts_.size()) ? self.pieces_[turn].data() : nullptr;
}

// Mostly the others are about to come: a sleep would take longer than their work.
bool Exchange::wait_for(std::uint64_t arrivals) const
{
    using Clock = std::chrono::steady_clock;
    constexpr int looks = 100;
    const Clock::time_point start = Clock::now();
    for (int look = 0; arrivals_.load() < arrivals; ++look) {
        if (look < looks)
            continue;
        if (failed_.load() || is_cancelled(host_))
            return false;
        if (Clock::now() - start < std::chrono::milliseconds(1))
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return true;
}

} // namespace pgkm::spread
