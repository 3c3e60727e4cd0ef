// check.hpp - every CUDA call goes through here: a failure becomes the engine's Error.
//
// Test hook: with PGKM_CUDA_FAULT=n in the environment when a context is opened, the nth
// checked call after that fails without being made. n:oom: as if memory had run out; n:timeout,
// n:gone: and so does every call after it, as after a kernel's time-out or with the device gone;
// n:trap: a kernel really fails, and the process can use the device no more.
#pragma once

#include <cuda_runtime.h>

#include "numeric/error.hpp"

namespace pgkm::cuda {

// Which status a CUDA error means to the caller.
PgkmStatus status_of(cudaError_t code) noexcept;

// Throws unless code is cudaSuccess; `call` names what was tried.
void check(cudaError_t code, const char *call);

// Reads PGKM_CUDA_FAULT and starts counting anew.
void arm_fault_injection() noexcept;

// cudaSuccess, or the error to pretend for this call.
cudaError_t injected_fault() noexcept;

// Makes one CUDA call, or pretends that it failed.
template <typename Call>
void checked(const char *name, Call &&call)
{
    const cudaError_t fault = injected_fault();
    check(fault == cudaSuccess ? call() : fault, name);
}

// Lets launches of a kernel have so much dynamic shared memory. The limit belongs to the kernel and not to a
// launch: calls side by side only ever raise it.
cudaError_t allow_shared_memory(const void *kernel, int bytes);

template <typename... Arguments>
cudaError_t allow_shared_memory(void (*kernel)(Arguments...), int bytes)
{
    return allow_shared_memory(reinterpret_cast<const void *>(kernel), bytes);
}

// After a kernel launch: configuration errors show here, faults at the next wait.
inline void launched(const char *kernel)
{
    checked(kernel, [] { return cudaGetLastError(); });
}

} // namespace pgkm::cuda
