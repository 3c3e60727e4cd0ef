// peer_link.cu - events by which the streams of several devices wait for one another.
//
// A peer has two events and takes them by turns. None is a whole meeting ahead of another, so that an event is recorded
// anew when all others wait for its record before.
#include "plugin/peer_link.hpp"

#include <algorithm>
#include <cstdlib>

namespace pgkm::cuda {
namespace {

bool reads(int device, int other)
{
    if (device == other)
        return true;
    int can = 0;
    checked("cudaDeviceCanAccessPeer", [&] { return cudaDeviceCanAccessPeer(&can, device, other); });
    if (can == 0)
        return false;
    checked("cudaDeviceEnablePeerAccess", [&] {
        const cudaError_t state = cudaDeviceEnablePeerAccess(other, 0);
        if (state != cudaErrorPeerAccessAlreadyEnabled)
            return state;
        cudaGetLastError(); // that it was enabled before must not be found by the next check
        return cudaSuccess;
    });
    return true;
}

} // namespace

// PGKM_CUDA_PEERS=0 takes the devices for ones that do not reach one another.
PeerLink::PeerLink(Context &context, const PgkmPeers &peers) : context_(context), peers_(peers)
{
    Peer own = {context_.device, {}};
    for (int turn = 0; turn < 2; ++turn) {
        Event &written = context_.written_for_peers[turn];
        if (written.get() == nullptr)
            written = make_event();
        own.written[turn] = written.get();
    }
    all_ = tell(own);
    const char *setting = std::getenv("PGKM_CUDA_PEERS");
    const bool wanted = (setting == nullptr || setting[0] != '0') && peers_.shares <= PGKM_MOST_DEVICES;
    const bool reached = wanted && std::all_of(all_.begin(), all_.end(),
                                               [&](const Peer &other) { return reads(context_.device, other.device); });
    direct_ = !any_of_peers(&peers_, !reached);
}

// After a failure work may be left in the stream; it ends early when the call is cancelled.
PeerLink::~PeerLink()
{
    guarded(nullptr, [&] { context_.wait(context_.compute.get(), context_.stop_flag); });
    cudaStreamSynchronize(context_.compute.get()); // also where that wait failed
}

void PeerLink::meet()
{
    const cudaStream_t stream = context_.compute.get();
    const Peer &self = all_[static_cast<std::size_t>(peers_.share)];
    record(self.written[turn_], stream);
    exchange(peers_, nullptr, 0); // all have recorded theirs
    for (const Peer &other : all_)
        enqueue_wait(other.written[turn_], stream);
    turn_ ^= 1;
}

std::int64_t *PeerLink::lend(std::size_t count)
{
    DeviceArray<std::int64_t> &lent = context_.for_peers;
    if (lent.count() < count || lent.count() / 2 > count) {
        lent = {};
        lent = DeviceArray<std::int64_t>(context_.budget, count);
    }
    return lent.get();
}

void PeerLink::take_back()
{
    context_.for_peers = {};
}

} // namespace pgkm::cuda
