// copy_rows.cuh - a tile of rows on its way to shared memory (cp.async, compute capability 8.0 and later).
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_pipeline.h>

namespace pgkm::cuda {

// Starts to copy Bytes (4, 8 or 16) to shared memory, or zeros where nothing is there; `from` must be a valid address
// all the same.
template <int Bytes>
__device__ inline void copy_or_zero(void *to, const void *from, bool there)
{
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int size = there ? Bytes : 0;
    if constexpr (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(size) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(Bytes), "r"(size)
                     : "memory");
}

// Starts to copy Rows x Width values to shared memory, rows Stride values apart there and `pitch` apart at `from`; all
// Threads of the block call it. Of the tile `rows` x `columns` values are there, the others become 0. wide: 16 bytes at
// a time, where `from`, `to`, pitch and columns allow. __pipeline_commit() and __pipeline_wait_prior() see to the end.
template <int Rows, int Width, int Stride, int Threads, typename T>
__device__ inline void copy_rows(T *to, const T *from, std::int64_t pitch, int rows, int columns, bool wide = false)
{
    const auto copy = [&](auto count) {
        constexpr int values = decltype(count)::value;
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x); i < Rows * Width / values; i += Threads) {
            const int row = i / (Width / values), column = i % (Width / values) * values;
            const bool inside = row < rows && column < columns;
            copy_or_zero<values *static_cast<int>(sizeof(T))>(to + row * Stride + column,
                                                              inside ? from + row * pitch + column : from, inside);
        }
    };
    if (wide)
        copy(std::integral_constant<int, 16 / sizeof(T)>());
    else
        copy(std::integral_constant<int, 1>());
}

} // namespace pgkm::cuda
