// peer_sums.hpp - integer sums of all shares of a problem, added up on the device of each.
//
// Where every device reads every other one's memory, each peer leaves a copy of its sums on its own device and adds up
// all copies (Li et al. 2010, Algorithm 8, without a master). Streams wait for one another (PeerLink), so that
// iterations are enqueued ahead. Elsewhere sums go by the host. Both add the same integers.
#pragma once

#include <vector>

#include "device/view.cuh"
#include "plugin/peer_link.hpp"

namespace pgkm::cuda {

class PeerSums {
  public:
    // count: 64-bit integers of one share. All peers make it at the same time. resident: whether this one's rows are.
    PeerSums(Context &context, const PgkmPeers &peers, std::size_t count, bool resident);

    // Iterations may be enqueued before it is known that the fit goes on to them; the same for all peers.
    bool ahead() const { return ahead_; }

    // What this peer adds: two arrays that lie one behind the other in the result.
    struct Own {
        std::int64_t *totals;
        std::size_t n_totals;
        std::int64_t *masses;
        std::size_t n_masses;
        bool stay; // else they are zeroed for the next iteration
    };
    // Enqueues the sums of all shares, to all(). Nothing is changed once `control` says stop.
    void add_up(const Own &own, const Control *control);
    std::int64_t *all() const { return all_.get(); }

  private:
    void add_by_devices(const Own &own, const Control *control);
    void add_by_host(const Own &own, const Control *control);

    Context &context_;
    std::size_t count_;
    bool ahead_ = false;
    DeviceArray<std::int64_t> all_;
    PinnedArray<std::int64_t> on_host_; // where they go by it
    std::vector<std::int64_t *> lent_;  // of each peer: two copies
    int turn_ = 0;
    PeerLink link_; // its end waits for kernels that use what is above
};

} // namespace pgkm::cuda
