// memory.hpp - owners of device resources; each frees what it holds, whatever is thrown.
//
// Destructors ignore errors on purpose: they run while another error may be on its way,
// and after a device fault every free fails anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "check.hpp"

namespace pgkm::cuda {

// Device memory that a context may hold; 0 means no limit.
struct Budget {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;

    bool fits(std::uint64_t bytes) const { return limit == 0 || used + bytes <= limit; }
    void take(std::uint64_t bytes)
    {
        if (!fits(bytes))
            throw Error(PGKM_LIMIT, "device memory limit of " + std::to_string(limit) + " bytes: " +
                                        std::to_string(used + bytes) + " bytes are needed");
        used += bytes;
    }
    void give(std::uint64_t bytes) { used -= bytes; }
};

// An array of device memory, counted against a budget.
template <typename T>
class DeviceArray {
  public:
    DeviceArray() = default;
    DeviceArray(Budget &budget, std::size_t count) : budget_(&budget), count_(count)
    {
        const std::size_t bytes = this->bytes();
        if (bytes == 0)
            return;
        budget.take(bytes);
        try {
            checked("cudaMalloc", [&] { return cudaMalloc(reinterpret_cast<void **>(&data_), bytes); });
        } catch (...) {
            budget.give(bytes);
            throw;
        }
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
        if (data_ != nullptr) {
            cudaFree(data_);
            budget_->give(bytes());
        }
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
        std::swap(budget_, other.budget_);
        std::swap(count_, other.count_);
    }
    T          *data_ = nullptr;
    Budget     *budget_ = nullptr;
    std::size_t count_ = 0;
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
