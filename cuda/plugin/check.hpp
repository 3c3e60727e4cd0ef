// check.hpp - every CUDA call goes through here: a failure becomes the engine's Error.
//
// Test hook: with PGKM_CUDA_FAULT=n in the environment when a context is opened, the nth
// checked call after that fails without being made. n:oom: as if memory had run out; n:timeout,
// n:gone: and so does every call after it, as after a kernel's time-out or with the device gone;
// n:trap: a kernel really fails, and the process can use the device no more. n:optional: the nth of the calls that only
// a faster way needs (within_limit() in memory.hpp); n:optional:oom: and every such call after it, as if memory had run
// out.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <cuda_runtime.h>

#include "numeric/error.hpp"

namespace pgkm::cuda {

// Which status a CUDA error means to the caller.
PgkmStatus status_of(cudaError_t code) noexcept;

// Throws unless code is cudaSuccess; `call` names what was tried.
void check(cudaError_t code, const char *call);

// Reads PGKM_CUDA_FAULT and starts counting anew.
void arm_fault_injection() noexcept;

// While it lives, the calls of its thread are of a way that may be left out.
struct OptionalCalls {
    OptionalCalls() noexcept;
    ~OptionalCalls();
    OptionalCalls(const OptionalCalls &) = delete;
    OptionalCalls &operator=(const OptionalCalls &) = delete;
};

// cudaSuccess, or the error to pretend for this call.
cudaError_t injected_fault() noexcept;

// Makes one CUDA call, or pretends that it failed.
template <typename Call>
void checked(const char *name, Call &&call)
{
    const cudaError_t fault = injected_fault();
    check(fault == cudaSuccess ? call() : fault, name);
}

// Bytes of the device's memory that nobody has.
std::size_t free_memory();

// After the launch of a kernel, which names it.
void checked_launch(const void *kernel);

// Lets launches of a kernel have so much dynamic shared memory. The limit belongs to the kernel and not to a
// launch: calls side by side only ever raise it.
cudaError_t allow_shared_memory(const void *kernel, int bytes);

template <typename... Parameters>
void allow_memory(void (*kernel)(Parameters...), std::size_t bytes)
{
    checked("cudaFuncSetAttribute",
            [&] { return allow_shared_memory(reinterpret_cast<const void *>(kernel), static_cast<int>(bytes)); });
}

// The blocks of a launch, or the threads of a block, in numbers of any type.
struct Extents : dim3 {
    Extents(const dim3 &of) : dim3(of) {}
    template <std::integral X, std::integral Y = int, std::integral Z = int>
    Extents(X x_, Y y_ = 1, Z z_ = 1)
        : dim3(static_cast<unsigned>(x_), static_cast<unsigned>(y_), static_cast<unsigned>(z_))
    {
    }
};

// Launches a kernel with `bytes` of dynamic shared memory. What is wrong with the launch shows here, faults at the next
// wait.
template <typename... Parameters>
void enqueue(void (*kernel)(Parameters...), Extents blocks, Extents threads, std::size_t bytes, cudaStream_t stream,
             std::type_identity_t<Parameters>... arguments)
{
    if (bytes != 0)
        allow_memory(kernel, bytes);
    kernel<<<blocks, threads, bytes, stream>>>(arguments...);
    checked_launch(reinterpret_cast<const void *>(kernel));
}

// `count` values from where to where, each on the device or on the host. Where the kind says that they come from
// pageable host memory, the call returns once they have been read: without it the driver decides.
template <typename V>
void enqueue_copy(std::type_identity_t<V> *to, const V *from, std::size_t count, cudaStream_t stream,
                  cudaMemcpyKind kind = cudaMemcpyDefault)
{
    if (count != 0)
        checked("cudaMemcpyAsync", [&] { return cudaMemcpyAsync(to, from, count * sizeof(V), kind, stream); });
}

inline void enqueue_fill(void *memory, int byte, std::size_t bytes, cudaStream_t stream)
{
    if (bytes != 0)
        checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(memory, byte, bytes, stream); });
}

inline void synchronise(cudaStream_t stream)
{
    checked("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream); });
}

inline void record(cudaEvent_t event, cudaStream_t stream)
{
    checked("cudaEventRecord", [&] { return cudaEventRecord(event, stream); });
}

// What is enqueued next waits for the event.
inline void enqueue_wait(cudaEvent_t event, cudaStream_t stream)
{
    checked("cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(stream, event, 0); });
}

} // namespace pgkm::cuda
