// half_wgmma.cu - sums of products of float32 rows by pairs of fp16 values (half_split.cuh) on a
// Hopper's tensor cores: wgmma (sm_90a), both operands in shared memory.
//
// A block takes the lower triangle of up to 128 features as three squares of 64 x 64, one to each of
// three warpgroups. A fourth brings rows in: it scales, splits and stores them in a ring of stages, in
// the form that wgmma reads transposed (features contiguous, 128-byte swizzle). Barriers in shared
// memory pass a stage from the one to the others and back, so that conversion, products and the
// float64 sums of different stages run at the same time.
#include "moments/half_split.cuh"

namespace pgkm::cuda::moments {
namespace {

constexpr int group_threads = 128, multipliers = 3, threads = (multipliers + 1) * group_threads;
constexpr int stage = 64; // rows; two of them between two flushes
constexpr int stages = 6;
constexpr int block = 64;                     // features of a square's side
constexpr int plane_bytes = stage * block * 2; // high or low halves of one block's features
constexpr int stage_bytes = 4 * plane_bytes;  // two blocks, high and low
constexpr int atom_bytes = 8 * 128;           // eight rows: the unit of the swizzle
constexpr int shared_bytes = stages * stage_bytes + atom_bytes + 2 * stages * 8; // planes start at a multiple of an atom
static_assert(2 * stage == half_stage_rows);

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Compiled without wgmma: float64 will do it.
__global__ void wgmma_kernel(const float *, int, const Segment *segments, Chunk, Sums, HalfScales scales)
{
    scales.overflow[segments[blockIdx.x].problem] = 1;
}

#else

__device__ inline void init_barrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ inline void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Until the barrier has completed the phase of this parity.
__device__ inline void wait_barrier(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra ready;\n"
                 "bra again;\n"
                 "ready:\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// Sixteen rows of 64 features at `address`: swizzled by 128 bytes, 1,024 bytes from eight rows to the next.
__device__ inline unsigned long long descriptor(unsigned address)
{
    return static_cast<unsigned long long>((address & 0x3FFFF) >> 4) | 1ULL << 16 |
           static_cast<unsigned long long>(atom_bytes >> 4) << 32 | 1ULL << 62;
}

// acc (64 x 64) = or += a' b over sixteen rows.
__device__ inline void multiply_async(float (&acc)[32], unsigned long long a, unsigned long long b, int add)
{
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, add, 1, 1, 1, 1;\n"
        "}"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]), "+f"(acc[6]), "+f"(acc[7]),
          "+f"(acc[8]), "+f"(acc[9]), "+f"(acc[10]), "+f"(acc[11]), "+f"(acc[12]), "+f"(acc[13]), "+f"(acc[14]),
          "+f"(acc[15]), "+f"(acc[16]), "+f"(acc[17]), "+f"(acc[18]), "+f"(acc[19]), "+f"(acc[20]), "+f"(acc[21]),
          "+f"(acc[22]), "+f"(acc[23]), "+f"(acc[24]), "+f"(acc[25]), "+f"(acc[26]), "+f"(acc[27]), "+f"(acc[28]),
          "+f"(acc[29]), "+f"(acc[30]), "+f"(acc[31])
        : "l"(a), "l"(b), "r"(add));
}

// A stage's rows, high and low halves of either block of features.
__device__ inline void multiply_stage(float (&acc)[32], unsigned at, int row, int column, int add)
{
    const unsigned left = at + static_cast<unsigned>(row * 2 * plane_bytes), right = at + static_cast<unsigned>(column * 2 * plane_bytes);
#pragma unroll
    for (int k = 0; k < stage / 16; ++k) {
        const unsigned skip = static_cast<unsigned>(k * 2 * atom_bytes);
        const unsigned long long high_a = descriptor(left + skip), low_a = descriptor(left + skip + plane_bytes);
        const unsigned long long high_b = descriptor(right + skip), low_b = descriptor(right + skip + plane_bytes);
        multiply_async(acc, low_a, high_b, k == 0 ? add : 1);
        multiply_async(acc, high_a, low_b, 1);
        multiply_async(acc, high_a, high_b, 1);
    }
}

// A warpgroup's square of the triangle. Thread of lane 4 g + t in warp w has rows 16 w + g and eight
// more, columns 8 q + 2 t and one more.
struct Square {
    int row, column; // in blocks

    template <typename Body>
    __device__ void each(int d, const float *scale, Body &&body) const
    {
        const int w = static_cast<int>(threadIdx.x) % group_threads / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int a = row * block + 16 * w + lane / 4 + i / 2 % 2 * 8;
            const int b = column * block + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (a < d && b <= a)
                body(i, triangle(a) + b, static_cast<double>(scale[a]) * static_cast<double>(scale[b]));
        }
    }
};

__device__ inline void multiply_rows(unsigned ring, unsigned full, unsigned empty, std::int64_t n_stages, double *cross,
                                     bool goes_on, int d, const float *scale)
{
    const int number = static_cast<int>(threadIdx.x) / group_threads;
    const Square square = {number == 0 ? 0 : 1, number == 2 ? 1 : 0};
    double total[32] = {};
    if (goes_on)
        square.each(d, scale, [&](int i, std::int64_t at, double by) { total[i] = cross[at] * by; });
    float acc[32] = {};
    for (std::int64_t s = 0; s < n_stages; ++s) {
        const unsigned slot = static_cast<unsigned>(s % stages), parity = static_cast<unsigned>(s / stages % 2);
        wait_barrier(full + slot * 8, parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply_stage(acc, ring + slot * stage_bytes, square.row, square.column, static_cast<int>(s % 2));
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x % 32 == 0) // each warp has seen its own part of the products done
            arrive(empty + slot * 8);
        if (s % 2 == 1)
#pragma unroll
            for (int i = 0; i < 32; ++i)
                total[i] += static_cast<double>(acc[i]);
    }
    square.each(d, scale, [&](int i, std::int64_t at, double by) { cross[at] = total[i] / by; });
}

// Features 4 lane to 4 lane + 3 of every fourth row.
__device__ inline void store_halves(char *to, int row, const SplitRow &split)
{
    const int lane = static_cast<int>(threadIdx.x) % 32, plane = lane / 16 * 2 * plane_bytes;
    // The 16-byte pieces of a row's 128 bytes are exchanged by the row's number in its atom.
    const int at = row * 128 + ((lane % 16 / 2 ^ row % 8) * 16) + lane % 2 * 8;
    *reinterpret_cast<uint2 *>(to + plane + at) = split.high;
    *reinterpret_cast<uint2 *>(to + plane + plane_bytes + at) = split.low;
}

constexpr int rows_at_once = 8; // of one warp: 32 rows of the four

__device__ inline bool bring_rows(char *ring, unsigned full, unsigned empty, const HalfLoader &loader,
                                  const std::int64_t first, std::int64_t step, std::int64_t n_stages, double (&sums)[4])
{
    const int warp = static_cast<int>(threadIdx.x) % group_threads / 32;
    // Stage number s of the block begins at this row; the stages come in pairs.
    const auto begin = [&](std::int64_t s) { return (first + s / 2 * step) * half_stage_rows + s % 2 * stage; };
    float4 values[2][rows_at_once];
    const auto load = [&](std::int64_t s, int half) {
        const std::int64_t row = begin(s) + half * rows_at_once * 4;
        if (loader.whole(row, rows_at_once * 4)) {
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i)
                values[half][i] = loader.load_whole(row + i * 4 + warp);
        } else {
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i)
                values[half][i] = loader.load(row + i * 4 + warp);
        }
    };
    __half2 largest = {};
    loader.prefetch(begin(1), stage);
    load(0, 0);
    for (std::int64_t s = 0; s < n_stages; ++s) {
        const unsigned slot = static_cast<unsigned>(s % stages), parity = static_cast<unsigned>(s / stages % 2);
        loader.prefetch(begin(s + 2), stage);
        wait_barrier(empty + slot * 8, parity ^ 1);
        float part[4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            load(half == 0 ? s : s + 1, 1 - half);
#pragma unroll
            for (int i = 0; i < rows_at_once; ++i) {
                const SplitRow split = loader.split(values[half][i], part, largest);
                store_halves(ring + slot * stage_bytes, (half * rows_at_once + i) * 4 + warp, split);
            }
        }
        // The tensor cores read what ordinary stores wrote.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        arrive(full + slot * 8);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sums[i] += static_cast<double>(part[i]);
    }
    return out_of_range(largest);
}

__global__ void __launch_bounds__(threads, 1)
    wgmma_kernel(const float *values, int d, const Segment *segments, Chunk chunk, Sums out, HalfScales scales)
{
    extern __shared__ char memory[];
    __shared__ float shift[2 * tile];
    if (__syncthreads_or(*const_cast<const volatile std::int32_t *>(out.stop)) != 0)
        return;
    const Segment segment = segments[blockIdx.x];
    const Run run = run_of(segment, chunk, half_stage_rows);
    prepare_scales(scales, segment, d, shift, threads);
    char *const ring = memory + (atom_bytes - tensor::shared_address(memory) % atom_bytes) % atom_bytes;
    const unsigned base = tensor::shared_address(ring), full = base + stages * stage_bytes, empty = full + stages * 8;
    if (threadIdx.x < stages) {
        init_barrier(full + threadIdx.x * 8, group_threads);
        init_barrier(empty + threadIdx.x * 8, multipliers * group_threads / 32);
    }
    __syncthreads();
    const std::int64_t there = (run.n_rows + half_stage_rows - 1) / half_stage_rows;
    const std::int64_t n_stages = run.stage < there ? ((there - run.stage - 1) / segment.count + 1) * 2 : 0;
    double *const cross = out.cross + segment.slot * triangle(d);
    const bool goes_on = chunk.first_row > 0;
    if (threadIdx.x < multipliers * group_threads) {
        multiply_rows(base, full, empty, n_stages, cross, goes_on, d, shift + tile);
        return;
    }
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) % group_threads / 32;
    const HalfLoader loader(values + run.first_row * d, run.n_rows, d, lane * 4, shift);
    double *const own = out.sums + (segment.slot * 4 + warp) * d + lane * 4;
    double sums[4] = {};
    for (int i = 0; i < 4; ++i)
        if (goes_on && lane * 4 + i < d)
            sums[i] = own[i] * static_cast<double>(shift[tile + lane * 4 + i]);
    if (bring_rows(ring, full, empty, loader, run.stage, segment.count, n_stages, sums))
        scales.overflow[segment.problem] = 1;
    for (int i = 0; i < 4; ++i)
        if (lane * 4 + i < d)
            own[i] = sums[i] / static_cast<double>(shift[tile + lane * 4 + i]);
}

#endif

} // namespace

void add_wgmma_products(Context &context, const float *values, int d, const Segment *segments, std::int64_t n_segments,
                        const Chunk &chunk, const Sums &sums, const HalfScales &scales)
{
    checked("cudaFuncSetAttribute",
            [&] { return allow_shared_memory(wgmma_kernel, shared_bytes); });
    wgmma_kernel<<<static_cast<unsigned>(n_segments), threads, shared_bytes, context.compute.get()>>>(values, d, segments,
                                                                                                 chunk, sums, scales);
    launched("wgmma_kernel");
}

} // namespace pgkm::cuda::moments
