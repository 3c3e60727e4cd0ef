// memory.hpp - owners of device resources; each frees what it holds, whatever is thrown.
//
// Destructors ignore errors on purpose: they run while another error may be on its way,
// and after a device fault every free fails anyway.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "plugin/budget.hpp"

namespace pgkm::cuda {

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

    void fill_zero(cudaStream_t stream) { enqueue_fill(data_, 0, bytes(), stream); }
    // Pageable host memory: the call returns once the source has been read.
    void upload(const T *from, std::size_t count, cudaStream_t stream, std::size_t offset = 0)
    {
        enqueue_copy(data_ + offset, from, count, stream, cudaMemcpyHostToDevice);
    }
    void download(T *to, std::size_t count, cudaStream_t stream, std::size_t offset = 0) const
    {
        enqueue_copy(to, data_ + offset, count, stream, cudaMemcpyDeviceToHost);
    }

  private:
    void swap(DeviceArray &other) noexcept
    {
        std::swap(data_, other.data_);
        std::swap(memory_, other.memory_);
        std::swap(count_, other.count_);
    }
    T *data_ = nullptr;
    DeviceMemory *memory_ = nullptr;
    std::size_t count_ = 0;
};

// An array of zeros, once the stream has come so far.
template <typename T>
DeviceArray<T> zeros(DeviceMemory &memory, std::size_t count, cudaStream_t stream)
{
    DeviceArray<T> array(memory, count);
    array.fill_zero(stream);
    return array;
}

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
    T *data_ = nullptr;
    std::size_t count_ = 0;
};

// Runs body; false where memory is short: the device's, the host's, or what the limits leave of them.
template <typename Body>
bool unless_short(Body &&body)
{
    try {
        body();
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT && error.status() != PGKM_OUT_OF_MEMORY)
            throw;
        return false;
    }
}

// Makes what only a faster way needs; false where there is no room for it.
template <typename Make>
bool within_limit(Make &&make)
{
    const OptionalCalls calls;
    return unless_short(make);
}

// An array that kernels read and write: on the device where it and its budget have room (in the budget `spare` bytes
// beside it), else page-locked on the host, where they reach it over the bus.
template <typename T>
class NearArray {
  public:
    NearArray() = default;
    NearArray(DeviceMemory &device, Budget &host, std::size_t count, std::uint64_t spare = 0)
    {
        if (device.fits(count * sizeof(T) + spare) && within_limit([&] { on_device_ = DeviceArray<T>(device, count); }))
            return;
        claim_ = Claim(host, count * sizeof(T));
        on_host_ = PinnedArray<T>(count);
    }
    T *get() const { return on_device_.get() != nullptr ? on_device_.get() : on_host_.get(); }

    // Pageable host memory: the call returns once the source has been read.
    void upload(const T *from, std::size_t count, cudaStream_t stream) { enqueue_copy(get(), from, count, stream); }

  private:
    Claim claim_; // on the host's budget
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
using Registration = Owned<void *, cudaHostUnregister>; // of memory that another owns
using Event = Owned<cudaEvent_t, cudaEventDestroy>;

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
