// peer_sums.cu - copies of a peer's sums for the others, and their addition.
//
// A peer's copy of an iteration is written again two iterations later. Before that its stream has waited for the copies
// that the others wrote after they had read it.
#include "fit/peer_sums.hpp"

#include "plan/stages.hpp"

namespace pgkm::cuda {
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

} // namespace

PeerSums::PeerSums(Context &context, const PgkmPeers &peers, std::size_t count, bool resident)
    : context_(context), count_(count), all_(context.budget, count), link_(context, peers)
{
    lent_ = link_.tell(link_.lend(2 * count));
    ahead_ = link_.direct() && !any_of_peers(&peers, !resident);
    if (!link_.direct())
        on_host_ = PinnedArray<std::int64_t>(count);
}

void PeerSums::add_up(const Own &own, const Control *control)
{
    if (link_.direct())
        add_by_devices(own, control);
    else
        add_by_host(own, control);
}

void PeerSums::add_by_devices(const Own &own, const Control *control)
{
    const cudaStream_t stream = context_.compute.get();
    const int blocks = blocks_for(static_cast<std::int64_t>(count_), 4 * threads, 2 * context_.facts.multiprocessors);
    Copies copies = {{}, link_.peers().shares};
    for (std::size_t share = 0; share < lent_.size(); ++share)
        copies.of[share] = lent_[share] + static_cast<std::size_t>(turn_) * count_;
    enqueue(collect_kernel, blocks, threads, 0, stream, own,
            lent_[static_cast<std::size_t>(link_.peers().share)] + static_cast<std::size_t>(turn_) * count_, control);
    link_.meet();
    enqueue(add_kernel, blocks, threads, 0, stream, copies, count_, all_.get(), control);
    turn_ ^= 1;
}

void PeerSums::add_by_host(const Own &own, const Control *control)
{
    const cudaStream_t stream = context_.compute.get();
    const int blocks = blocks_for(static_cast<std::int64_t>(count_), 4 * threads, 2 * context_.facts.multiprocessors);
    enqueue(collect_kernel, blocks, threads, 0, stream, own, all_.get(), control);
    all_.download(on_host_.get(), count_, stream);
    context_.wait(stream, const_cast<std::int32_t *>(&control->stop));
    add_over(&link_.peers(), on_host_.get(), count_);
    all_.upload(on_host_.get(), count_, stream);
    context_.bytes_moved += 2 * count_ * sizeof(std::int64_t);
}

} // namespace pgkm::cuda
