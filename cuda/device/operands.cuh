// operands.cuh - centroids in the forms that the filters read, remade after every update.
//
// Filters work with centred values: x' = x - s, c' = c - s, s one shift per problem (the
// middle of each feature's range), so that large common offsets cost no precision.
#pragma once

#include <cstdint>

#include "device/view.cuh"

namespace pgkm::cuda {

inline constexpr int panel_group = 8; // centroids per group of the register kernels

// Facts of the prepared centroids that decide the width of the filters' margin.
struct FilterHead {
    float radius; // at least the largest |c'|
    float box;    // at least the largest |x'|
};

template <typename T>
struct Operands {
    const T    *shift = nullptr;  // d
    FilterHead *head = nullptr;
    float      *panel = nullptr;  // register kernels: groups of 8 centroids, feature by feature
    int         panel_d = 0;      // d padded to a size that the kernels are built for
    // Floats from one group to the next; 4 of them only keep groups in different banks.
    __host__ __device__ int panel_stride() const { return (panel_d + 1) * panel_group + 4; }
    __host__ __device__ int panel_groups(int k) const { return (k + panel_group - 1) / panel_group; }
};

// Writes the operands of centroid j (c: its d values) and returns an upper bound of |c'|.
// One warp; lanes share out the features. Rows beyond k (to a full group) are made unreachable.
template <typename T>
__device__ inline float prepare_centroid(const Operands<T> &operands, int j, int k, const T *c, int d)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    double square = 0.0;
    for (int f = lane; f < operands.panel_d; f += 32) {
        float centred = 0.0f;
        if (j < k && f < d)
            centred = static_cast<float>(c[f] - operands.shift[f]);
        square += static_cast<double>(centred) * static_cast<double>(centred);
        operands.panel[(j / panel_group) * operands.panel_stride() + f * panel_group + j % panel_group] = centred;
    }
    for (int offset = 16; offset > 0; offset >>= 1)
        square += __shfl_xor_sync(~0u, square, offset);
    if (lane == 0)
        operands.panel[(j / panel_group) * operands.panel_stride() + operands.panel_d * panel_group + j % panel_group] =
            j < k ? static_cast<float>(square / 2) : __int_as_float(0x7f800000);
    return j < k ? __double2float_ru(sqrt(square) * (1.0 + 0x1p-40)) : 0.0f;
}

} // namespace pgkm::cuda
