// copy_rows.cuh - a tile of rows on its way to shared memory (cp.async, compute capability 8.0 and later).
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_pipeline.h>

namespace pgkm::cuda {

// Starts to copy Rows x Width values to shared memory, rows Stride values apart there and `pitch` apart at `from`; all
// Threads of the block call it. Of the tile `rows` x `columns` values are there, the others become 0. wide: 16 bytes at
// a time, where `from`, `to`, pitch and columns allow. __pipeline_commit() and __pipeline_wait_prior() see to the end.
template <int Rows, int Width, int Stride, int Threads, typename T>
__device__ inline void copy_rows(T *to, const T *from, std::int64_t pitch, int rows, int columns, bool wide = false)
{
    const auto copy = [&](auto count) {
        constexpr int values = decltype(count)::value, bytes = values * static_cast<int>(sizeof(T));
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x); i < Rows * Width / values; i += Threads) {
            const int row = i / (Width / values), column = i % (Width / values) * values;
            const bool inside = row < rows && column < columns;
            __pipeline_memcpy_async(to + row * Stride + column, inside ? from + row * pitch + column : from, bytes,
                                    inside ? 0 : bytes);
        }
    };
    if (wide)
        copy(std::integral_constant<int, 16 / sizeof(T)>());
    else
        copy(std::integral_constant<int, 1>());
}

} // namespace pgkm::cuda
