// peer_link.hpp - peers of a problem (PgkmPeers) whose devices read one another's memory: where their streams meet, and
// memory that they lend.
#pragma once

#include <vector>

#include "backend/peers.hpp"
#include "plugin/context.hpp"

namespace pgkm::cuda {

class PeerLink {
  public:
    // All peers make it at the same time.
    PeerLink(Context &context, const PgkmPeers &peers);
    // Waits until no kernel of this peer reads the others' memory.
    ~PeerLink();
    PeerLink(const PeerLink &) = delete;
    PeerLink &operator=(const PeerLink &) = delete;

    // Whether each device reads the memory of every other one. Else there is no meet().
    bool direct() const { return direct_; }
    const PgkmPeers &peers() const { return peers_; }

    // What each peer gives, in the order of the shares. All peers call it at the same time, as they do meet().
    template <typename V>
    std::vector<V> tell(const V &own) const
    {
        return pgkm::tell(peers_, own);
    }

    // What any peer has enqueued before is done when what this one enqueues next begins. The host waits for the other
    // hosts, and not for a device.
    void meet();

    // At least so many 64-bit integers of device memory that the others may read, until the next call. They stay when
    // this peer fails, since others may still read them: until rows are loaded anew.
    std::int64_t *lend(std::size_t count);
    // Gives that memory back to the budget. Nobody may read it any more.
    void take_back();

  private:
    struct Peer {
        std::int32_t device;
        cudaEvent_t written[2];
    };

    Context &context_;
    const PgkmPeers &peers_;
    std::vector<Peer> all_; // this one too
    bool direct_ = false;
    int turn_ = 0;
};

} // namespace pgkm::cuda
