#include "check.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace pgkm::cuda {
namespace {

std::atomic<long> calls_until_fault{0}; // 0: no fault is armed
std::atomic<bool> fault_is_memory{false};

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
    fault_is_memory = setting != nullptr && std::strstr(setting, ":oom") != nullptr;
    calls_until_fault = setting == nullptr ? 0 : std::atol(setting);
}

cudaError_t injected_fault() noexcept
{
    if (calls_until_fault.load(std::memory_order_relaxed) <= 0)
        return cudaSuccess;
    if (calls_until_fault.fetch_sub(1) != 1)
        return cudaSuccess;
    return fault_is_memory ? cudaErrorMemoryAllocation : cudaErrorLaunchFailure;
}

} // namespace pgkm::cuda
