// tensor_map.hpp - maps of matrices for the tensor memory accelerator (compute capability 9.0), by which kernels copy
// boxes (device/wgmma.cuh).
#pragma once

#include <string>

#include <cuda.h>
#include <cuda_fp16.h>

#include "plugin/check.hpp"

namespace pgkm::cuda {

// A matrix of fp16 lines as boxes of 64 features by `box` lines; what lies beyond its edges reads as zeros.
inline CUtensorMap tensor_map(const __half *lines, std::int64_t count, int width, int box)
{
    static const auto encode = [] {
        void *entry = nullptr;
        cudaDriverEntryPointQueryResult result;
        checked("cudaGetDriverEntryPointByVersion", [&] {
            return cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                                    &result);
        });
        return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
    }();
    CUtensorMap map;
    const cuuint64_t size[2] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(count)};
    const cuuint64_t stride[1] = {static_cast<cuuint64_t>(width) * 2};
    const cuuint32_t boxes[2] = {64, static_cast<cuuint32_t>(box)}, steps[2] = {1, 1};
    const CUresult result =
        encode == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                          : encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<__half *>(lines), size, stride,
                                   boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw Error(PGKM_DEVICE_ERROR,
                    "cuTensorMapEncodeTiled failed with error " + std::to_string(static_cast<int>(result)));
    return map;
}

} // namespace pgkm::cuda
