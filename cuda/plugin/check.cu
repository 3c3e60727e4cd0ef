// check.cu - what a CUDA error means to the caller, and the faults that tests inject.
#include "plugin/check.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace pgkm::cuda {
namespace {

// What an armed fault does when its call comes.
enum class Fault { failure, memory, timeout, gone, trap };

struct Armed {
    std::atomic<long> calls{0}; // until the fault; 0: none is armed
    std::atomic<bool> lasting{false};
    Fault kind = Fault::failure;
    bool optional = false; // of optional calls alone
};
Armed armed;
thread_local int optional_depth = 0;

// A kernel that really fails: from then on the process has no usable context.
__global__ void trap_kernel()
{
    asm("trap;");
}

cudaError_t strike(Fault kind)
{
    switch (kind) {
    case Fault::memory:
        armed.lasting = armed.optional;
        return cudaErrorMemoryAllocation;
    case Fault::timeout:
        armed.lasting = true;
        return cudaErrorLaunchTimeout;
    case Fault::gone:
        armed.lasting = true;
        return cudaErrorDevicesUnavailable;
    case Fault::trap:
        trap_kernel<<<1, 1>>>();
        return cudaDeviceSynchronize();
    default:
        return cudaErrorLaunchFailure;
    }
}

} // namespace

PgkmStatus status_of(cudaError_t code) noexcept
{
    switch (code) {
    case cudaSuccess:
        return PGKM_OK;
    case cudaErrorMemoryAllocation:
        return PGKM_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInitializationError:
        return PGKM_UNAVAILABLE;
    default:
        return PGKM_DEVICE_ERROR;
    }
}

void check(cudaError_t code, const char *call)
{
    if (code == cudaSuccess)
        return;
    cudaGetLastError(); // a non-sticky error must not be found again by the next check
    throw Error(status_of(code), std::string(call) + ": " + cudaGetErrorString(code));
}

void arm_fault_injection() noexcept
{
    const char *setting = std::getenv("PGKM_CUDA_FAULT");
    if (setting == nullptr)
        setting = "";
    const auto is = [&](const char *suffix) { return std::strstr(setting, suffix) != nullptr; };
    armed.kind = is(":oom")       ? Fault::memory
                 : is(":timeout") ? Fault::timeout
                 : is(":gone")    ? Fault::gone
                 : is(":trap")    ? Fault::trap
                                  : Fault::failure;
    armed.optional = is(":optional");
    armed.lasting = false;
    armed.calls = std::atol(setting);
}

OptionalCalls::OptionalCalls() noexcept
{
    ++optional_depth;
}

OptionalCalls::~OptionalCalls()
{
    --optional_depth;
}

cudaError_t injected_fault() noexcept
{
    const bool lasting = armed.lasting.load(std::memory_order_relaxed);
    if (!lasting && armed.calls.load(std::memory_order_relaxed) <= 0)
        return cudaSuccess;
    if (armed.optional && optional_depth == 0)
        return cudaSuccess;
    return lasting || armed.calls.fetch_sub(1) == 1 ? strike(armed.kind) : cudaSuccess;
}

std::size_t free_memory()
{
    std::size_t free = 0, total = 0;
    checked("cudaMemGetInfo", [&] { return cudaMemGetInfo(&free, &total); });
    return free;
}

void checked_launch(const void *kernel)
{
    const cudaError_t fault = injected_fault();
    const cudaError_t state = fault == cudaSuccess ? cudaGetLastError() : fault;
    const char *name = nullptr;
    // After a fault that ends the use of the device the driver may not say it.
    if (state != cudaSuccess && cudaFuncGetName(&name, kernel) != cudaSuccess)
        name = nullptr;
    check(state, name != nullptr ? name : "kernel");
}

cudaError_t allow_shared_memory(const void *kernel, int bytes)
{
    static std::mutex mutex;
    static std::map<std::pair<const void *, int>, int> limits;
    int device = 0;

    if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess)
        return error;
    const std::lock_guard lock(mutex);
    int &limit = limits[{kernel, device}];
    if (bytes <= limit)
        return cudaSuccess;
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error == cudaSuccess)
        limit = bytes;
    return error;
}

} // namespace pgkm::cuda
