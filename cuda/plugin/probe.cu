// probe.cu - which devices there are, and whether this build has code for them.
#include "plugin/probe.hpp"

#include <algorithm>
#include <cstdio>

#include "plugin/check.hpp"

namespace pgkm::cuda {
namespace {

// Stands for all kernels: every file is compiled for the same architectures.
__global__ void any_kernel() {}

// The first calls for a device: they create its context and load a kernel, machine code or PTX that the driver
// translates.
cudaError_t try_device(int ordinal, std::size_t *free_bytes)
{
    cudaFuncAttributes attributes;
    std::size_t total = 0;
    cudaError_t state = cudaSetDevice(ordinal);
    if (state == cudaSuccess)
        state = cudaFuncGetAttributes(&attributes, any_kernel);
    if (state == cudaSuccess)
        state = cudaMemGetInfo(free_bytes, &total);
    if (state != cudaSuccess)
        cudaGetLastError(); // or the next check finds it
    return state;
}

bool is_without_code(cudaError_t state)
{
    return state == cudaErrorNoKernelImageForDevice || state == cudaErrorInvalidDeviceFunction;
}

template <typename... Values>
void refuse(PgkmDevice &device, const char *format, Values... values)
{
    std::snprintf(device.reason, sizeof device.reason, format, values...);
}

void describe(int ordinal, int driver, PgkmDevice &out)
{
    out = {};
    out.ordinal = ordinal;
    out.driver_version = driver;
    cudaDeviceProp properties;
    const cudaError_t known = cudaGetDeviceProperties(&properties, ordinal);
    if (known != cudaSuccess) {
        cudaGetLastError();
        return refuse(out, "%s", cudaGetErrorString(known));
    }
    std::snprintf(out.name, sizeof out.name, "%.127s", properties.name);
    out.capability_major = properties.major;
    out.capability_minor = properties.minor;
    out.units = properties.multiProcessorCount;
    out.memory_total = properties.totalGlobalMem;
    if (properties.major < 8)
        return refuse(out, "compute capability %d.%d is below 8.0", properties.major, properties.minor);
    // Only a device that may be usable is given a context.
    std::size_t free_bytes = 0;
    const cudaError_t state = try_device(ordinal, &free_bytes);
    if (is_without_code(state))
        return refuse(out, "no code for compute capability %d.%d in this build", properties.major, properties.minor);
    if (state != cudaSuccess)
        return refuse(out, "%s", cudaGetErrorString(state));
    out.memory_free = free_bytes;
    out.usable = 1;
}

} // namespace

PgkmStatus probe(PgkmDevice *devices, std::int32_t capacity, std::int32_t *count, PgkmError *error)
{
    return guarded(error, [&] {
        *count = 0;
        int found = 0, driver = 0;
        check(cudaGetDeviceCount(&found), "cudaGetDeviceCount");
        check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
        *count = found;
        for (int i = 0; i < std::min(found, static_cast<int>(capacity)); ++i)
            describe(i, driver, devices[i]);
    });
}

} // namespace pgkm::cuda
