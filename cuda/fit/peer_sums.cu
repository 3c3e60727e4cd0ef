// peer_sums.cu - copies of a peer's sums for the others, and their addition.
//
// A peer's copy of an iteration is written again two iterations later. Before that its stream has waited for the copies
// that the others wrote after they had read it. Copies lie in memory of the context, which stays while others may still
// read it after this peer has failed.
#include "fit/peer_sums.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plan/stages.hpp"

namespace pgkm::cuda {

// What a peer tells the others of itself; all are threads of one process.
struct PeerSums::Peer {
    std::int32_t device;
    std::int64_t *copies[2];
    cudaEvent_t written[2];
};

namespace {

constexpr int threads = 256;

struct Copies {
    const std::int64_t *of[PGKM_MOST_DEVICES];
    int shares;
};

__global__ void __launch_bounds__(threads) collect_kernel(PeerSums::Own own, std::int64_t *copy, const Control *control)
{
    if (block_stopped(control))
        return;
    const auto step = static_cast<std::size_t>(gridDim.x) * threads;
    for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < own.n_totals + own.n_masses; i += step) {
        std::int64_t *const from = i < own.n_totals ? own.totals + i : own.masses + (i - own.n_totals);
        copy[i] = *from;
        if (!own.stay)
            *from = 0;
    }
}

// What another device has written is read past this one's caches.
__global__ void __launch_bounds__(threads)
    add_kernel(Copies copies, std::size_t count, std::int64_t *all, const Control *control)
{
    if (block_stopped(control))
        return;
    const auto step = static_cast<std::size_t>(gridDim.x) * threads;
    for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < count / 2; i += step) {
        longlong2 sum = make_longlong2(0, 0);
        for (int share = 0; share < copies.shares; ++share) {
            const longlong2 own = __ldcv(reinterpret_cast<const longlong2 *>(copies.of[share]) + i);
            sum.x += own.x;
            sum.y += own.y;
        }
        reinterpret_cast<longlong2 *>(all)[i] = sum;
    }
}

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

PeerSums::PeerSums(Context &context, const PgkmPeers &peers, std::size_t count, bool resident)
    : context_(context), peers_(peers), count_(count), all_(context.budget, count)
{
    link(resident);
    if (!direct_)
        on_host_ = PinnedArray<std::int64_t>(count);
}

// PGKM_CUDA_PEERS=0 sends all sums by the host, as where devices do not reach one another.
void PeerSums::link(bool resident)
{
    if (context_.for_peers.count() < 2 * count_) {
        context_.for_peers = {};
        context_.for_peers = DeviceArray<std::int64_t>(context_.budget, 2 * count_);
    }
    Peer own = {context_.device, {}, {}};
    for (int turn = 0; turn < 2; ++turn) {
        Event &written = context_.written_for_peers[turn];
        if (written.get() == nullptr)
            written = make_event();
        own.copies[turn] = context_.for_peers.get() + static_cast<std::size_t>(turn) * count_;
        own.written[turn] = written.get();
    }
    const PgkmPiece *const pieces = exchange(peers_, &own, sizeof own);
    others_.resize(static_cast<std::size_t>(peers_.shares));
    for (std::size_t share = 0; share < others_.size(); ++share)
        std::memcpy(&others_[share], pieces[share].data, sizeof(Peer));
    const char *setting = std::getenv("PGKM_CUDA_PEERS");
    const bool wanted = (setting == nullptr || setting[0] != '0') && peers_.shares <= PGKM_MOST_DEVICES;
    const bool reached = wanted && std::all_of(others_.begin(), others_.end(),
                                               [&](const Peer &other) { return reads(context_.device, other.device); });
    direct_ = !any_of_peers(&peers_, !reached);
    ahead_ = direct_ && !any_of_peers(&peers_, !resident);
}

// After a failure iterations may be left in the stream; they end early when the call is cancelled.
PeerSums::~PeerSums()
{
    guarded(nullptr, [&] { context_.wait(context_.compute.get(), context_.stop_flag); });
    cudaStreamSynchronize(context_.compute.get()); // also where that wait failed
}

void PeerSums::add_up(const Own &own, const Control *control)
{
    if (direct_)
        add_by_devices(own, control);
    else
        add_by_host(own, control);
}

void PeerSums::add_by_devices(const Own &own, const Control *control)
{
    const cudaStream_t stream = context_.compute.get();
    const int blocks = blocks_for(static_cast<std::int64_t>(count_), 4 * threads, 2 * context_.facts.multiprocessors);
    const Peer &self = others_[static_cast<std::size_t>(peers_.share)];
    collect_kernel<<<blocks, threads, 0, stream>>>(own, self.copies[turn_], control);
    launched("collect_kernel");
    checked("cudaEventRecord", [&] { return cudaEventRecord(self.written[turn_], stream); });
    exchange(peers_, nullptr, 0); // all have recorded theirs
    Copies copies = {{}, peers_.shares};
    for (std::size_t share = 0; share < others_.size(); ++share) {
        const Peer &other = others_[share];
        copies.of[share] = other.copies[turn_];
        checked("cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(stream, other.written[turn_], 0); });
    }
    add_kernel<<<blocks, threads, 0, stream>>>(copies, count_, all_.get(), control);
    launched("add_kernel");
    turn_ ^= 1;
}

void PeerSums::add_by_host(const Own &own, const Control *control)
{
    const cudaStream_t stream = context_.compute.get();
    const int blocks = blocks_for(static_cast<std::int64_t>(count_), 4 * threads, 2 * context_.facts.multiprocessors);
    collect_kernel<<<blocks, threads, 0, stream>>>(own, all_.get(), control);
    launched("collect_kernel");
    all_.download(on_host_.get(), count_, stream);
    context_.wait(stream, const_cast<std::int32_t *>(&control->stop));
    add_over(&peers_, on_host_.get(), count_);
    all_.upload(on_host_.get(), count_, stream);
    context_.bytes_moved += 2 * count_ * sizeof(std::int64_t);
}

} // namespace pgkm::cuda
