// products.cu - fixed products on the tensor cores, compared with their sums in float64: some thousands by mma.sync in
// fp16 and bfloat16, a warp a set, and by wgmma of 128 and of 256 columns, a warpgroup a set.
#include "plugin/products.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "device/copy_rows.cuh"
#include "device/fixed_products.cuh"
#include "device/tensor_mma.cuh"
#include "device/wgmma.cuh"

namespace pgkm::cuda {
namespace {

constexpr unsigned mma_sets = 32, wgmma_sets = 8; // of both, some whose sums do not start from 0

// Counts a result that is not allowed. planted: as if the sum had been cut at 2^-16.
__device__ void judge(const FixedProducts &set, int row, int column, float result, bool planted, unsigned *wrong)
{
    const float shown = planted ? result + 0x1p-16f * fmaxf(fabsf(result), 1.0f) : result;
    if (!set.allows(row, column, shown))
        atomicAdd(wrong, 1u);
}

__global__ void mma_kernel(bool planted, unsigned *wrong)
{
    const FixedProducts set(blockIdx.x);
    const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4 * 2;
    for (const bool bfloat : {false, true}) {
        const auto pack = [=](float low, float high) {
            return bfloat ? tensor::pack_bf16(low, high) : tensor::pack_halves(low, high);
        };
        unsigned a[4], b[2];
        float acc[4];
        for (int i = 0; i < 4; ++i) {
            const int row = g + i % 2 * 8, first = t + i / 2 * 8;
            a[i] = pack(set.left(row, first), set.left(row, first + 1));
            acc[i] = set.start(g + i / 2 * 8, t + i % 2);
        }
        for (int i = 0; i < 2; ++i)
            b[i] = pack(set.right(g, t + 8 * i), set.right(g, t + 8 * i + 1));
        if (bfloat)
            tensor::multiply_bf16(acc, a, b[0], b[1]);
        else
            tensor::multiply_fp16(acc, a, b[0], b[1]);
        for (int i = 0; i < 4; ++i)
            judge(set, g + i / 2 * 8, t + i % 2, acc[i], planted, wrong);
    }
}

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)

template <int Columns>
__global__ void wgmma_kernel(bool, unsigned *)
{
}

#else

// 64 rows and 128 or 256 columns of 16 features, each as the first quarter of a line that is swizzled by 128 bytes.
template <int Columns>
__global__ void __launch_bounds__(128) wgmma_kernel(bool planted, unsigned *wrong)
{
    __shared__ __align__(1024) __half left[64 * 64], right[Columns * 64];
    const FixedProducts set(blockIdx.x);
    const int self = static_cast<int>(threadIdx.x), lane = self % 32;
    const auto place = [](int line, int i) { return line * 64 + (i / 8 ^ line % 8) * 8 + i % 8; };
    for (int i = 0; i < 16; ++i) {
        if (self < 64)
            left[place(self, i)] = __float2half_rn(set.left(self, i));
        for (int line = self; line < Columns; line += 128)
            right[place(line, i)] = __float2half_rn(set.right(line, i));
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const auto row_of = [&](int i) { return self / 32 * 16 + lane / 4 + i / 2 % 2 * 8; };
    const auto column_of_result = [&](int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; };
    // The instruction wants registers; a loop that is not unrolled, memory.
    float values[Columns / 2], acc[Columns / 2];
#pragma unroll 1
    for (int i = 0; i < Columns / 2; ++i)
        values[i] = set.start(row_of(i), column_of_result(i));
#pragma unroll
    for (int i = 0; i < Columns / 2; ++i)
        acc[i] = values[i];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(acc, descriptor(shared_address(left)), descriptor(shared_address(right)), 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < Columns / 2; ++i)
        values[i] = acc[i];
#pragma unroll 1
    for (int i = 0; i < Columns / 2; ++i)
        judge(set, row_of(i), column_of_result(i), values[i], planted, wrong);
}

#endif

constexpr int known = 1, mma_holds = 2, wgmma_holds = 4;

// `off`: the beginning of the names of instructions whose results shall seem to be off; empty: of none.
int try_products(Context &context, std::string_view off)
{
    const cudaStream_t stream = context.compute.get();
    const auto planted = [&](std::string_view name) { return !off.empty() && name.substr(0, off.size()) == off; };
    auto wrong = zeros<unsigned>(context.budget, 2, stream);
    enqueue(mma_kernel, mma_sets, 32, 0, stream, planted("mma"), wrong.get());
    enqueue(wgmma_kernel<128>, wgmma_sets, 128, 0, stream, planted("wgmma128"), wrong.get() + 1);
    enqueue(wgmma_kernel<256>, wgmma_sets, 128, 0, stream, planted("wgmma256"), wrong.get() + 1);
    unsigned counts[2] = {};
    wrong.download(counts, 2, stream);
    context.wait(stream);
    return known | (counts[0] == 0 ? mma_holds : 0) | (counts[1] == 0 ? wgmma_holds : 0);
}

} // namespace

void check_products(Context &context)
{
    constexpr int most_devices = 64;
    static std::atomic<int> answers[most_devices];
    std::atomic<int> &answer = answers[context.device % most_devices];
    int found = answer;
    if (const char *off = std::getenv("PGKM_CUDA_PRODUCTS"))
        found = try_products(context, off);
    else if (found == 0)
        answer = found = try_products(context, {});
    context.facts.mma = (found & mma_holds) != 0;
    context.facts.wgmma = context.facts.mma && (found & wgmma_holds) != 0;
}

} // namespace pgkm::cuda
