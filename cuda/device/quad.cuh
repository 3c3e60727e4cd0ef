// quad.cuh - what the four lanes of a quad do together: a row's features dealt out as products on the tensor cores want
// them (the order of features within a product may be chosen at will, so that a lane's share lies together in memory),
// and the least of their scores.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/load_row.cuh"
#include "device/warp.cuh"

namespace pgkm::cuda {

// Feature that lane `q` of a quad holds in slot w of the c-th sixteen, loads being W values wide.
template <int W>
__host__ __device__ constexpr int slot_feature(int c, int q, int w)
{
    return 16 * c + w / W * 4 * W + q * W + w % W;
}

// The lane's four values of a row; beyond d they are zero. W > 1: float32 rows, aligned for loads of W values.
template <int W, typename T>
__device__ inline void load_slots(const T *row, int c, int d, T (&value)[4])
{
    const int q = static_cast<int>(threadIdx.x & 3);
#pragma unroll
    for (int w = 0; w < 4; w += W) {
        const int f = slot_feature<W>(c, q, w);
        if constexpr (W == 4) {
            load_four(row, f, d, true, value);
        } else if constexpr (W == 2) {
            const float2 two = f < d ? *reinterpret_cast<const float2 *>(row + f) : make_float2(0.0f, 0.0f);
            value[w] = two.x;
            value[w + 1] = two.y;
        } else {
            value[w] = f < d ? row[f] : T{0};
        }
    }
}

// Calls body(C, W) as integral constants: sixteens of 17 to 64 features, and values that a lane can load at a time.
template <typename Body>
void with_row_shape(int d, Body &&body)
{
    const auto with = [&](auto chunks) {
        if (d % 4 == 0)
            body(chunks, std::integral_constant<int, 4>());
        else if (d % 2 == 0)
            body(chunks, std::integral_constant<int, 2>());
        else
            body(chunks, std::integral_constant<int, 1>());
    };
    if (d <= 32)
        with(std::integral_constant<int, 2>());
    else if (d <= 48)
        with(std::integral_constant<int, 3>());
    else
        with(std::integral_constant<int, 4>());
}

// Of what each lane brings, the index of the least score for all four; the lowest on a tie.
__device__ inline int least_in_quad(float score, int index)
{
    for (int offset = 1; offset <= 2; offset <<= 1) {
        const float other = __shfl_xor_sync(~0u, score, offset);
        const int other_index = __shfl_xor_sync(~0u, index, offset);
        if (other < score || (other == score && other_index < index)) {
            score = other;
            index = other_index;
        }
    }
    return index;
}

} // namespace pgkm::cuda
