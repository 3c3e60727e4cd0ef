// copy_rows.cuh - copies on their way to shared memory, and tiles of rows by them (cp.async, compute capability 8.0 and
// later). A thread commits the copies that it has started since the last time, and waits for what it has committed.
#pragma once

#include <cstdint>
#include <type_traits>

namespace pgkm::cuda {

__device__ inline unsigned shared_address(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ inline void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until at most so many of the last commits are still under way.
template <int Pending>
__device__ inline void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Starts to copy Bytes (4, 8 or 16) to shared memory, or zeros where nothing is there; `from` must be a valid address
// all the same.
template <int Bytes>
__device__ inline void copy_or_zero(unsigned to, const void *from, bool there)
{
    const int size = there ? Bytes : 0;
    if constexpr (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(size)
                     : "memory");
}

// Starts to copy Rows x Width values to shared memory, rows Stride values apart there and `pitch` apart at `from`; all
// Threads of the block call it. Of the tile `rows` x `columns` values are there, the others become 0. wide: 16 bytes at
// a time, where `from`, `to`, pitch and columns allow.
template <int Rows, int Width, int Stride, int Threads, typename T>
__device__ inline void copy_rows(T *to, const T *from, std::int64_t pitch, int rows, int columns, bool wide = false)
{
    const auto copy = [&](auto count) {
        constexpr int values = decltype(count)::value;
#pragma unroll 4
        for (int i = static_cast<int>(threadIdx.x); i < Rows * Width / values; i += Threads) {
            const int row = i / (Width / values), column = i % (Width / values) * values;
            const bool inside = row < rows && column < columns;
            copy_or_zero<values *static_cast<int>(sizeof(T))>(shared_address(to + row * Stride + column),
                                                              inside ? from + row * pitch + column : from, inside);
        }
    };
    if (wide)
        copy(std::integral_constant<int, 16 / sizeof(T)>());
    else
        copy(std::integral_constant<int, 1>());
}

} // namespace pgkm::cuda
