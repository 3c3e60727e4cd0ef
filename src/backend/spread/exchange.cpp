// exchange.cpp - a meeting of threads that hand one another what they have.
//
// No peer is more than one call ahead of another: it leaves a call when all have come to it. So the number of all
// arrivals tells whether all have come, and a piece is read by nobody when its peer gives the second time after.
#include "backend/spread/exchange.hpp"

#include <chrono>
#include <new>
#include <thread>

namespace pgkm::spread {

Exchange::Exchange(std::int32_t shares, std::int64_t n_rows, const PgkmHost &host, const std::atomic<bool> &failed)
    : host_(host), failed_(failed), all_(static_cast<std::size_t>(shares))
{
    for (std::vector<PgkmPiece> &pieces : pieces_)
        pieces.resize(all_.size());
    for (std::int32_t i = 0; i < shares; ++i) {
        Peer &peer = all_[static_cast<std::size_t>(i)];
        peer.owner = this;
        peer.peers = {i, shares, n_rows, give, &peer};
    }
}

const PgkmPiece *Exchange::give(void *arg, const void *own, std::uint64_t bytes) noexcept
{
    Peer &peer = *static_cast<Peer *>(arg);
    Exchange &self = *peer.owner;
    const std::size_t turn = peer.calls++ % 2;
    try {
        const char *const from = static_cast<const char *>(own);
        peer.own[turn].assign(from, from + bytes);
    } catch (const std::bad_alloc &) {
        self.out_of_memory_.store(true); // this peer fails, and the others learn of that
        return nullptr;
    }
    self.pieces_[turn][static_cast<std::size_t>(peer.peers.share)] = {peer.own[turn].data(), bytes};
    self.arrivals_.fetch_add(1);
    return self.wait_for(peer.calls * self.all_.size()) ? self.pieces_[turn].data() : nullptr;
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
