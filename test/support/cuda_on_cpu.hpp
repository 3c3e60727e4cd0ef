// cuda_on_cpu.hpp - what a generated CUDA text needs to run on the CPU: blocks one after the other, the threads of a
// block as threads of the system.
#pragma once

#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(threads)

using std::max;
using std::min;

struct Place {
    unsigned x = 0, y = 0, z = 0;
};
inline thread_local Place threadIdx;
inline Place blockIdx, blockDim, gridDim;
inline std::barrier<> *block_barrier = nullptr;

inline void __syncthreads()
{
    block_barrier->arrive_and_wait();
}
inline int __syncthreads_or(int wanted)
{
    static int any = 0;
    __atomic_fetch_or(&any, wanted, __ATOMIC_SEQ_CST);
    __syncthreads();
    const int found = __atomic_load_n(&any, __ATOMIC_SEQ_CST);
    __syncthreads();
    __atomic_store_n(&any, 0, __ATOMIC_SEQ_CST);
    __syncthreads();
    return found;
}
// Each thread runs by itself.
inline unsigned __activemask()
{
    return 1U << threadIdx.x % 32;
}
inline int __ffs(unsigned bits)
{
    return __builtin_ffs(static_cast<int>(bits));
}
inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

inline void __threadfence_block()
{
    __threadfence();
}

inline double __longlong_as_double(long long bits)
{
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline long long __double_as_longlong(double value)
{
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

using Bits = unsigned long long;

inline Bits atomicCAS(Bits *to, Bits before, Bits after)
{
    __atomic_compare_exchange_n(to, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return before;
}
inline Bits atomicExch(Bits *to, Bits value)
{
    return __atomic_exchange_n(to, value, __ATOMIC_SEQ_CST);
}
inline unsigned atomicAdd(unsigned *to, unsigned value)
{
    return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);
}
inline Bits atomicAdd(Bits *to, Bits value)
{
    return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);
}

template <typename Change>
void change_atomically(Bits *to, Change &&change)
{
    Bits before = __atomic_load_n(to, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(to, &before, change(before), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
}
inline void atomicMin(Bits *to, Bits value)
{
    change_atomically(to, [&](Bits before) { return min(before, value); });
}
inline void atomicMax(Bits *to, Bits value)
{
    change_atomically(to, [&](Bits before) { return max(before, value); });
}
inline void atomicAdd(double *to, double value)
{
    change_atomically(reinterpret_cast<Bits *>(to), [&](Bits before) {
        return static_cast<Bits>(__double_as_longlong(__longlong_as_double(static_cast<long long>(before)) + value));
    });
}

// Runs a kernel on columns x rows blocks. The test's program calls it.
extern "C" void run_on_cpu(unsigned columns, unsigned rows, unsigned threads, const std::function<void()> &kernel)
{
    gridDim = {columns, rows, 1};
    blockDim = {threads, 1, 1};
    for (unsigned y = 0; y < rows; ++y)
        for (unsigned x = 0; x < columns; ++x) {
            std::barrier<> barrier(threads);
            std::vector<std::thread> block;
            blockIdx = {x, y, 0};
            if (threads == 1) {
                kernel();
                continue;
            }
            block_barrier = &barrier;
            for (unsigned t = 0; t < threads; ++t)
                block.emplace_back([&, t] {
                    threadIdx = {t, 0, 0};
                    kernel();
                });
            for (std::thread &thread : block)
                thread.join();
        }
}
