// exchange.hpp - one fit by several peers: where their threads meet and hand one another what PgkmPeers.exchange() is
// given.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/host.hpp"
#include "numeric/platform.hpp"

namespace pgkm::spread {

class Exchange {
  public:
    // n_rows: of all shares. A wait ends when `host` says that the call is cancelled, or `failed` that a peer has
    // failed.
    Exchange(std::int32_t shares, std::int64_t n_rows, const PgkmHost &host, const std::atomic<bool> &failed);
    Exchange(const Exchange &) = delete;
    Exchange &operator=(const Exchange &) = delete;

    const PgkmPeers *peers_of(std::int32_t share) const { return &all_[static_cast<std::size_t>(share)].peers; }
    // Why a peer got no pieces, where neither a cancel nor another one was the cause.
    bool out_of_memory() const { return out_of_memory_.load(); }

  private:
    struct Peer {
        Exchange *owner;
        PgkmPeers peers;
        std::uint64_t calls = 0;
        std::vector<char> own[2]; // two, by turns: the others may still read the one before
    };
    static const PgkmPiece *give(void *arg, const void *own, std::uint64_t bytes) noexcept;
    bool wait_for(std::uint64_t arrivals) const;

    const PgkmHost &host_;
    const std::atomic<bool> &failed_;
    std::vector<Peer> all_; // by share
    std::vector<PgkmPiece> pieces_[2];
    std::atomic<std::uint64_t> arrivals_{0};
    std::atomic<bool> out_of_memory_{false};
};

} // namespace pgkm::spread
