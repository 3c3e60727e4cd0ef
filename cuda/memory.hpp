// memory.hpp - owners of device resources; each frees what it holds, whatever is thrown.
//
// Destructors ignore errors on purpose: they run while another error may be on its way,
// and after a device fault every free fails anyway.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "check.hpp"

namespace pgkm::cuda {

// Memory that a context may hold, on the device or on the host; a limit of 0 means none.
struct Budget {
    const char   *what;
    std::uint64_t limit = 0;
    std::uint64_t used = 0;

    std::uint64_t room() const
    {
        if (limit == 0)
            return std::numeric_limits<std::uint64_t>::max();
        return limit - std::min(limit, used);
    }
    bool fits(std::uint64_t bytes) const { return bytes <= room(); }
    void take(std::uint64_t bytes)
    {
        if (!fits(bytes))
            throw Error(PGKM_LIMIT, std::string(what) + " limit of " + std::to_string(limit) + " bytes: " +
                                        std::to_string(used + bytes) + " bytes are needed");
        used += bytes;
    }
    void give(std::uint64_t bytes) { used -= bytes; }
};

// A share of a budget for memory that something else allocates, such as vectors.
class Claim {
  public:
    Claim() = default;
    Claim(Budget &budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) { budget.take(bytes); }
    Claim(Claim &&other) noexcept : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    Claim &operator=(Claim &&other) noexcept
    {
        std::swap(budget_, other.budget_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Claim()
    {
        if (bytes_ != 0)
            budget_->give(bytes_);
    }

  private:
    Budget       *budget_ = nullptr;
    std::uint64_t bytes_ = 0;
};

// Device memory within a budget. Small blocks that are given back are kept for the next request of
// the same size: a job makes some twenty arrays, and problems of one call tend to be of one shape.
// A block may still be in use by kernels when it is given away again, which is right as long as
// all work on it is in one stream (the chunks' copies wait for the stream of the kernels).
class DeviceMemory : public Budget {
  public:
    DeviceMemory() : Budget{"device memory"} {}
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;
    ~DeviceMemory() { flush(); }

    void *allocate(std::size_t bytes)
    {
        take(bytes);
        const auto found = spare_.find(bytes);
        if (found != spare_.end()) {
            void *block = found->second;
            spare_.erase(found);
            spare_bytes_ -= bytes;
            return block;
        }
        if (limit != 0 && used + spare_bytes_ > limit)
            flush();
        void *block = nullptr;
        try {
            checked("cudaMalloc", [&] {
                cudaError_t state = cudaMalloc(&block, bytes);
                if (state == cudaErrorMemoryAllocation && !spare_.empty()) {
                    cudaGetLastError();
                    flush();
                    state = cudaMalloc(&block, bytes);
                }
                return state;
            });
        } catch (...) {
            give(bytes);
            throw;
        }
        return block;
    }
    void release(void *block, std::size_t bytes) noexcept
    {
        give(bytes);
        if (keeps_ && bytes <= largest_spare && spare_bytes_ + bytes <= most_spare) {
            try {
                spare_.emplace(bytes, block);
                spare_bytes_ += bytes;
                return;
            } catch (...) { // no memory to remember it
            }
        }
        cudaFree(block);
    }
    // Whether blocks are kept; tools that look for unwritten memory want fresh ones.
    void keep_spare(bool keeps) { keeps_ = keeps; }

  private:
    static constexpr std::size_t largest_spare = std::size_t{1} << 20, most_spare = std::size_t{16} << 20;

    void flush() noexcept
    {
        for (const auto &[bytes, block] : spare_)
            cudaFree(block);
        spare_.clear();
        spare_bytes_ = 0;
    }
    std::multimap<std::size_t, void *> spare_;
    std::size_t                        spare_bytes_ = 0;
    bool                               keeps_ = true;
};

// An array of device memory.
template <typename T>
class DeviceArray {
  public:
    DeviceArray() = default;
    DeviceArray(DeviceMemory &memory, std::size_t count) : memory_(&memory), count_(count)
    {
        if (bytes() != 0)
            data_ = static_cast<T *>(memory.allocate(bytes()));
    }
    DeviceArray(DeviceArray &&other) noexcept { swap(other); }
    DeviceArray &operator=(DeviceArray &&other) noexcept
    {
        DeviceArray taken(std::move(other));
        swap(taken);
        return *this;
    }
    ~DeviceArray()
    {
        if (data_ != nullptr)
            memory_->release(data_, bytes());
    }

    T *get() const { return data_; }
    std::size_t count() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }

    void fill_zero(cudaStream_t stream)
    {
        if (count_ != 0)
            checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(data_, 0, bytes(), stream); });
    }
    // Pageable host memory: the call returns once the source has been read.
    void upload(const T *from, std::size_t count, cudaStream_t stream, std::size_t offset = 0)
    {
        if (count != 0)
            checked("cudaMemcpyAsync", [&] {
                return cudaMemcpyAsync(data_ + offset, from, count * sizeof(T), cudaMemcpyHostToDevice, stream);
            });
    }
    void download(T *to, std::size_t count, cudaStream_t stream, std::size_t offset = 0) const
    {
        if (count != 0)
            checked("cudaMemcpyAsync", [&] {
                return cudaMemcpyAsync(to, data_ + offset, count * sizeof(T), cudaMemcpyDeviceToHost, stream);
            });
    }

  private:
    void swap(DeviceArray &other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(memory_, other.memory_);
        std::swap(count_, other.count_);
    }
    T            *data_ = nullptr;
    DeviceMemory *memory_ = nullptr;
    std::size_t   count_ = 0;
};

// Page-locked host memory that the device can read and write in place.
template <typename T>
class PinnedArray {
  public:
    PinnedArray() = default;
    explicit PinnedArray(std::size_t count) : count_(count)
    {
        checked("cudaHostAlloc", [&] {
            return cudaHostAlloc(reinterpret_cast<void **>(&data_), count * sizeof(T), cudaHostAllocMapped);
        });
    }
    PinnedArray(PinnedArray &&other) noexcept : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
    PinnedArray &operator=(PinnedArray &&other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~PinnedArray()
    {
        if (data_ != nullptr)
            cudaFreeHost(data_);
    }
    T *get() const { return data_; }
    std::size_t count() const { return count_; }
    T &operator[](std::size_t i) const { return data_[i]; }

  private:
    T          *data_ = nullptr;
    std::size_t count_ = 0;
};

// An array that kernels read and write: on the device where its budget has room (and `spare`
// bytes beside it), else page-locked on the host, where they reach it over the bus.
template <typename T>
class NearArray {
  public:
    NearArray() = default;
    NearArray(DeviceMemory &device, Budget &host, std::size_t count, std::uint64_t spare = 0)
    {
        if (device.fits(count * sizeof(T) + spare)) {
            on_device_ = DeviceArray<T>(device, count);
        } else {
            claim_ = Claim(host, count * sizeof(T));
            on_host_ = PinnedArray<T>(count);
        }
    }
    T *get() const { return on_device_.get() != nullptr ? on_device_.get() : on_host_.get(); }

    // Pageable host memory: the call returns once the source has been read.
    void upload(const T *from, std::size_t count, cudaStream_t stream)
    {
        if (count != 0)
            checked("cudaMemcpyAsync",
                    [&] { return cudaMemcpyAsync(get(), from, count * sizeof(T), cudaMemcpyDefault, stream); });
    }

  private:
    Claim          claim_; // on the host's budget
    DeviceArray<T> on_device_;
    PinnedArray<T> on_host_;
};

// One CUDA handle of any kind: Destroy is the function that ends it.
template <typename Handle, cudaError_t (*Destroy)(Handle)>
class Owned {
  public:
    Owned() = default;
    explicit Owned(Handle handle) : handle_(handle) {}
    Owned(Owned &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Owned &operator=(Owned &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned()
    {
        if (handle_ != nullptr)
            Destroy(handle_);
    }
    Handle get() const { return handle_; }
    Handle *out() { return &handle_; }

  private:
    Handle handle_ = nullptr;
};

using CudaStream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

inline CudaStream make_stream()
{
    CudaStream stream;
    checked("cudaStreamCreate", [&] { return cudaStreamCreateWithFlags(stream.out(), cudaStreamNonBlocking); });
    return stream;
}

inline Event make_event()
{
    Event event;
    checked("cudaEventCreate", [&] { return cudaEventCreateWithFlags(event.out(), cudaEventDisableTiming); });
    return event;
}

} // namespace pgkm::cuda
