// upload.cu - copies through page-locked buffers that several threads fill or empty, two each in turn. The buffers are
// kept for the next call of the process.
#include "plugin/upload.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "numeric/processors.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm::cuda {
namespace {

constexpr std::size_t plain_piece = std::size_t{64} << 20; // of one call; cancel is polled between them
constexpr std::size_t buffer_bytes = std::size_t{2} << 20;
constexpr std::size_t lanes_pay = std::size_t{16} << 20; // below, threads cost more than they bring
constexpr unsigned most_lanes = 8;                       // of one upload
constexpr std::ptrdiff_t most_kept = 16;                 // of a device

// What one thread copies through: two buffers, so that one is filled while the other is on its way.
struct Lane {
    int device;
    CudaStream stream;
    PinnedArray<char> buffers[2];
    Event sent[2];
};

// Lanes that nobody uses. Never destroyed: at exit the driver may be gone before us.
class Pool {
  public:
    std::unique_ptr<Lane> take(int device)
    {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found =
                std::find_if(lanes_.begin(), lanes_.end(), [&](const auto &lane) { return lane->device == device; });
            if (found != lanes_.end()) {
                std::unique_ptr<Lane> lane = std::move(*found);
                lanes_.erase(found);
                return lane;
            }
        }
        auto lane = std::make_unique<Lane>();
        lane->device = device;
        lane->stream = make_stream();
        for (int i = 0; i < 2; ++i) {
            lane->buffers[i] = PinnedArray<char>(buffer_bytes);
            lane->sent[i] = make_event();
        }
        return lane;
    }
    void give(std::unique_ptr<Lane> lane)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (std::count_if(lanes_.begin(), lanes_.end(),
                          [&](const auto &kept) { return kept->device == lane->device; }) < most_kept)
            lanes_.push_back(std::move(lane));
    }

  private:
    std::mutex mutex_; // guards what follows
    std::vector<std::unique_ptr<Lane>> lanes_;
};

Pool &pool()
{
    static Pool *const made = new Pool;
    return *made;
}

// One transfer, as its threads see it.
struct Transfer {
    Context &context;
    char *to;
    const char *from;
    std::size_t bytes;
    std::atomic<std::size_t> next{0};             // first byte that no thread has taken
    std::atomic<cudaError_t> failed{cudaSuccess}; // the first failure stops all

    bool goes_on() const { return failed == cudaSuccess && !context.is_cancelled(); }
    std::size_t piece_at(std::size_t begin) const { return std::min(buffer_bytes, bytes - begin); }
};

// To the device: takes pieces until there are none left. CUDA's calls are not those that the tests'
// faults count: they count calls of one thread.
cudaError_t send(Transfer &transfer, Lane &lane)
{
    cudaError_t state = cudaSuccess;
    for (int slot = 0; state == cudaSuccess && transfer.goes_on(); slot ^= 1) {
        const std::size_t begin = transfer.next.fetch_add(buffer_bytes);
        if (begin >= transfer.bytes)
            break;
        const std::size_t piece = transfer.piece_at(begin);
        state = cudaEventSynchronize(lane.sent[slot].get()); // at once when it was never recorded
        if (state != cudaSuccess)
            break;
        std::memcpy(lane.buffers[slot].get(), transfer.from + begin, piece);
        state = cudaMemcpyAsync(transfer.to + begin, lane.buffers[slot].get(), piece, cudaMemcpyHostToDevice,
                                lane.stream.get());
        if (state == cudaSuccess)
            state = cudaEventRecord(lane.sent[slot].get(), lane.stream.get());
    }
    return state;
}

// From the device: one piece is on its way while the one before it is copied on.
cudaError_t fetch(Transfer &transfer, Lane &lane)
{
    cudaError_t state = cudaSuccess;
    std::size_t waiting = transfer.bytes; // where the piece on its way begins; the end: there is none
    for (int slot = 0; state == cudaSuccess && transfer.goes_on(); slot ^= 1) {
        const std::size_t begin = std::min(transfer.next.fetch_add(buffer_bytes), transfer.bytes);
        if (begin < transfer.bytes) {
            state = cudaMemcpyAsync(lane.buffers[slot].get(), transfer.from + begin, transfer.piece_at(begin),
                                    cudaMemcpyDefault, lane.stream.get());
            if (state == cudaSuccess)
                state = cudaEventRecord(lane.sent[slot].get(), lane.stream.get());
        }
        if (state == cudaSuccess && waiting < transfer.bytes) {
            state = cudaEventSynchronize(lane.sent[slot ^ 1].get());
            if (state == cudaSuccess)
                std::memcpy(transfer.to + waiting, lane.buffers[slot ^ 1].get(), transfer.piece_at(waiting));
        } else if (begin == transfer.bytes) {
            break;
        }
        waiting = begin;
    }
    return state;
}

using Carrier = cudaError_t (*)(Transfer &, Lane &);

void carry(Transfer &transfer, Lane &lane, Carrier carrier)
{
    cudaError_t state = cudaSetDevice(lane.device);
    if (state == cudaSuccess)
        state = carrier(transfer, lane);
    const cudaError_t last = cudaStreamSynchronize(lane.stream.get());
    state = state == cudaSuccess ? last : state;
    cudaError_t none = cudaSuccess;
    if (state != cudaSuccess)
        transfer.failed.compare_exchange_strong(none, state);
}

void carry_plainly(Context &context, char *to, const char *from, std::size_t bytes, cudaMemcpyKind kind)
{
    for (std::size_t done = 0; done < bytes; done += plain_piece) {
        context.poll();
        const std::size_t piece = std::min(plain_piece, bytes - done);
        enqueue_copy(to + done, from + done, piece, context.compute.get(), kind);
        context.bytes_moved += piece;
    }
    context.wait(context.compute.get());
}

// Half of the threads: the others run what fills the rows of the next job.
unsigned lanes_for(const Context &context, std::size_t bytes)
{
    const unsigned processors = std::max(1, context.most_threads / 2);
    const std::size_t pieces = bytes / (2 * buffer_bytes);
    return static_cast<unsigned>(std::min<std::size_t>(std::min(most_lanes, processors), pieces));
}

void carry_by_lanes(Transfer &transfer, unsigned count, Carrier carrier)
{
    Context &context = transfer.context;
    // What the device has to do before: the buffer may be one that its last user has not left yet.
    context.wait(context.compute.get());
    std::vector<std::unique_ptr<Lane>> lanes;
    for (unsigned i = 0; i < count; ++i)
        lanes.push_back(pool().take(context.device));
    parallel_for(count, count, [&](std::int64_t i, int) { carry(transfer, *lanes[i], carrier); });
    check(transfer.failed, "transfer");
    for (std::unique_ptr<Lane> &lane : lanes)
        pool().give(std::move(lane));
}

void transfer(Context &context, void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, Carrier carrier)
{
    const unsigned count = bytes < lanes_pay ? 1 : lanes_for(context, bytes);
    if (count < 2)
        return carry_plainly(context, static_cast<char *>(to), static_cast<const char *>(from), bytes, kind);
    Transfer whole{context, static_cast<char *>(to), static_cast<const char *>(from), bytes};
    carry_by_lanes(whole, count, carrier);
    context.bytes_moved += bytes;
    context.poll();
}

} // namespace

void upload(Context &context, void *to, const void *from, std::size_t bytes)
{
    transfer(context, to, from, bytes, cudaMemcpyHostToDevice, send);
}

void download(Context &context, void *to, const void *from, std::size_t bytes)
{
    transfer(context, to, from, bytes, cudaMemcpyDefault, fetch);
}

} // namespace pgkm::cuda
