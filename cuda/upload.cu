#include "upload.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace pgkm::cuda {
namespace {

constexpr std::size_t plain_piece = std::size_t{64} << 20; // of one call; cancel is polled between them
constexpr std::size_t buffer_bytes = std::size_t{2} << 20;
constexpr std::size_t lanes_pay = std::size_t{16} << 20;   // below, threads cost more than they bring
constexpr unsigned    most_lanes = 8;                      // of one upload
constexpr std::size_t most_kept = 16;                      // of all

// What one thread copies through: two buffers, so that one is filled while the other is on its way.
struct Lane {
    int               device;
    CudaStream        stream;
    PinnedArray<char> buffers[2];
    Event             sent[2];
};

// Lanes that nobody uses. Never destroyed: at exit the driver may be gone before us.
class Pool {
  public:
    std::unique_ptr<Lane> take(int device)
    {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                            [&](const auto &lane) { return lane->device == device; });
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
        if (lanes_.size() < most_kept)
            lanes_.push_back(std::move(lane));
    }

  private:
    std::mutex                         mutex_; // guards what follows
    std::vector<std::unique_ptr<Lane>> lanes_;
};

Pool &pool()
{
    static Pool *const made = new Pool;
    return *made;
}

// One upload, as its threads see it.
struct Transfer {
    Context                 &context;
    char                    *to;
    const char              *from;
    std::size_t              bytes;
    std::atomic<std::size_t> next{0};          // first byte that no thread has taken
    std::atomic<cudaError_t> failed{cudaSuccess}; // the first failure stops all
};

// Takes pieces until there are none left, then waits for its own. CUDA's calls are not those
// that the tests' faults count: they count calls of one thread.
void carry(Transfer &transfer, Lane &lane)
{
    cudaError_t state = cudaSetDevice(lane.device);
    for (int slot = 0; state == cudaSuccess && transfer.failed == cudaSuccess && !transfer.context.is_cancelled(); slot ^= 1) {
        const std::size_t begin = transfer.next.fetch_add(buffer_bytes);
        if (begin >= transfer.bytes)
            break;
        const std::size_t piece = std::min(buffer_bytes, transfer.bytes - begin);
        state = cudaEventSynchronize(lane.sent[slot].get()); // at once when it was never recorded
        if (state != cudaSuccess)
            break;
        std::memcpy(lane.buffers[slot].get(), transfer.from + begin, piece);
        state = cudaMemcpyAsync(transfer.to + begin, lane.buffers[slot].get(), piece, cudaMemcpyHostToDevice,
                                lane.stream.get());
        if (state == cudaSuccess)
            state = cudaEventRecord(lane.sent[slot].get(), lane.stream.get());
    }
    const cudaError_t last = cudaStreamSynchronize(lane.stream.get());
    state = state == cudaSuccess ? last : state;
    cudaError_t none = cudaSuccess;
    if (state != cudaSuccess)
        transfer.failed.compare_exchange_strong(none, state);
}

void upload_plainly(Context &context, char *to, const char *from, std::size_t bytes)
{
    for (std::size_t done = 0; done < bytes; done += plain_piece) {
        context.poll();
        const std::size_t piece = std::min(plain_piece, bytes - done);
        checked("cudaMemcpyAsync", [&] {
            return cudaMemcpyAsync(to + done, from + done, piece, cudaMemcpyHostToDevice, context.compute.get());
        });
        context.bytes_moved += piece;
    }
    context.wait(context.compute.get());
}

// Half of the processors: the others run what fills the rows of the next job.
unsigned lanes_for(std::size_t bytes)
{
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency() / 2);
    const std::size_t pieces = bytes / (2 * buffer_bytes);
    return static_cast<unsigned>(std::min<std::size_t>(std::min(most_lanes, processors), pieces));
}

} // namespace

void upload(Context &context, void *to, const void *from, std::size_t bytes)
{
    const unsigned count = bytes < lanes_pay ? 1 : lanes_for(bytes);
    if (count < 2)
        return upload_plainly(context, static_cast<char *>(to), static_cast<const char *>(from), bytes);
    Transfer transfer{context, static_cast<char *>(to), static_cast<const char *>(from), bytes};
    // What the device has to do before: the buffer may be one that its last user has not left yet.
    context.wait(context.compute.get());
    std::vector<std::unique_ptr<Lane>> lanes;
    for (unsigned i = 0; i < count; ++i)
        lanes.push_back(pool().take(context.device));
    std::vector<std::thread> threads;
    try {
        for (unsigned i = 1; i < count; ++i)
            threads.emplace_back([&transfer, lane = lanes[i].get()] { carry(transfer, *lane); });
    } catch (const std::system_error &) {
        // Fewer threads than wished for: they do it all the same.
    }
    carry(transfer, *lanes[0]);
    for (std::thread &thread : threads)
        thread.join();
    check(transfer.failed, "upload");
    context.bytes_moved += bytes;
    for (std::unique_ptr<Lane> &lane : lanes)
        pool().give(std::move(lane));
    context.poll();
}

} // namespace pgkm::cuda
