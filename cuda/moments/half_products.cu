// half_products.cu - sums of products of float32 rows by pairs of fp16 values (half_split.cuh), for one
// square of up to 128 features: mma.sync, compute capability 8.0 and later. half_wgmma.cu is what
// Hopper runs.
#include "moments/half_split.cuh"

namespace pgkm::cuda::moments {
namespace {

constexpr int threads = 320, warps = 10;
constexpr int rows_at_once = half_stage_rows / 2; // between two barriers
constexpr int stride = tile + 8;                  // halves; eight rows' 16 bytes lie in banks of their own
constexpr int plane = rows_at_once * stride;      // of the high or the low halves
constexpr int buffer_halves = 2 * plane;
constexpr int shared_bytes = 2 * buffer_halves * 2 + 2 * tile * 4;
constexpr int loads = (rows_at_once + warps - 1) / warps; // rows that a warp brings in

// Four transposed 8 x 8 matrices of 16-bit values: each thread gets, of column g, rows 2 t and 2 t + 1.
__device__ inline void load_transposed(unsigned (&to)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// The fragments of 32 features in 16 rows: [half][0..3] as multiply_fp16() takes them on the left;
// on the right the eight features q are registers q % 2 and q % 2 + 2 of half q / 2.
struct Fragments {
    unsigned high[2][4], low[2][4];
};

__device__ inline void load_fragments(Fragments &to, unsigned address)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        load_transposed(to.high[half], address + half * 32);
        load_transposed(to.low[half], address + half * 32 + plane * 2);
    }
}

__device__ inline void multiply_split(float (&acc)[4], const Fragments &a, int half, const Fragments &b, int q)
{
    const int first = q % 2, second = q % 2 + 2;
    tensor::multiply_fp16(acc, a.low[half], b.high[q / 2][first], b.high[q / 2][second]);
    tensor::multiply_fp16(acc, a.high[half], b.low[q / 2][first], b.low[q / 2][second]);
    tensor::multiply_fp16(acc, a.high[half], b.high[q / 2][first], b.high[q / 2][second]);
}

// A warp's 32 x 32 sums, of the last rows in float32; on the diagonal also the features' sums, as
// products with a column of ones.
struct Sums32 {
    float  part[2][4][4], ones[2][4];
    double total[2][4][4], sums[2][2];
};

__device__ inline void add_sixteen(Sums32 &own, unsigned left, unsigned right, bool diagonal)
{
    constexpr unsigned one = 0x3C003C00u;
    Fragments a;
    load_fragments(a, left);
    if (diagonal) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            tensor::multiply_fp16(own.ones[half], a.low[half], one, one);
            tensor::multiply_fp16(own.ones[half], a.high[half], one, one);
#pragma unroll
            for (int q = 0; q < 2 * half + 2; ++q)
                multiply_split(own.part[half][q], a, half, a, q);
        }
        return;
    }
    Fragments b;
    load_fragments(b, right);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int q = 0; q < 4; ++q)
            multiply_split(own.part[half][q], a, half, b, q);
}

__device__ inline void flush(Sums32 &own)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int q = 0; q < 4; ++q)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                own.total[half][q][i] += static_cast<double>(own.part[half][q][i]);
                own.part[half][q][i] = 0.0f;
            }
#pragma unroll
        for (int i = 0; i < 2; ++i)
            own.sums[half][i] += static_cast<double>(own.ones[half][2 * i]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            own.ones[half][i] = 0.0f;
    }
}

// Rows of a part on their way in: features 4 lane to 4 lane + 3 of every tenth row.
__device__ inline void load_part(const HalfLoader &loader, std::int64_t part, float4 (&values)[loads])
{
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int within = static_cast<int>(threadIdx.x) / 32 + i * warps;
        values[i] = loader.load(part * rows_at_once + min(within, rows_at_once - 1));
    }
}

// Splits the values into the planes at `to`; true where one is out of range.
__device__ inline bool store_part(const HalfLoader &loader, const float4 (&values)[loads], __half *to)
{
    __half2 largest = {};
    float unused[4] = {};
#pragma unroll
    for (int i = 0; i < loads; ++i) {
        const int within = static_cast<int>(threadIdx.x) / 32 + i * warps;
        if (within >= rows_at_once)
            continue;
        const SplitRow split = loader.split(values[i], unused, largest);
        __half *const at = to + within * stride + static_cast<int>(threadIdx.x) % 32 * 4;
        *reinterpret_cast<uint2 *>(at) = split.high;
        *reinterpret_cast<uint2 *>(at + plane) = split.low;
    }
    return out_of_range(largest);
}

__device__ inline void place_sum(Sums32 &own, const float *scales, int a, int b, int half, int q, int i, bool store,
                                 double *cross, int d)
{
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const int row = a + half * 16 + i / 2 * 8 + g, column = b + q * 8 + 2 * t + i % 2;
    if (row >= d || column > row)
        return;
    // Powers of two: the bits of the sum do not change.
    const double scale = static_cast<double>(scales[row]) * static_cast<double>(scales[column]);
    double &at = cross[triangle(row) + column];
    if (store)
        at = own.total[half][q][i] / scale;
    else
        own.total[half][q][i] = at * scale;
}

// Reads (a chunk goes on) or writes the warp's sums.
__device__ inline void exchange(Sums32 &own, const float *scales, int a, int b, int d, bool diagonal, bool store,
                                double *sums, double *cross)
{
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int q = 0; q < 4; ++q)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                place_sum(own, scales, a, b, half, q, i, store, cross, d);
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int f = a + half * 16 + i * 8 + g;
            if (!diagonal || f >= d)
                continue;
            const double scale = static_cast<double>(scales[f]);
            if (!store)
                own.sums[half][i] = sums[f] * scale; // all four threads have the row's sum
            else
                sums[t * d + f] = t == 0 ? own.sums[half][i] / scale : 0.0;
        }
}

__global__ void __launch_bounds__(threads, 1)
    half_kernel(const float *values, int d, const Segment *segments, Chunk chunk, Sums out, HalfScales scales)
{
    extern __shared__ __align__(16) __half planes[];
    if (__syncthreads_or(*const_cast<const volatile std::int32_t *>(out.stop)) != 0)
        return;
    const Segment segment = segments[blockIdx.x];
    const Run run = run_of(segment, chunk, half_stage_rows);
    float *const shift = reinterpret_cast<float *>(planes + 2 * buffer_halves);
    prepare_scales(scales, segment, d, shift, threads);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const Place place = place_on_diagonal<4>(warp);
    const int a = place.row * side, b = place.column * side;
    const HalfLoader loader(values + run.first_row * d, run.n_rows, d, lane * 4, shift);
    Sums32 own = {};
    double *const cross = out.cross + segment.slot * triangle(d), *const sums = out.sums + segment.slot * 4 * d;
    if (chunk.first_row > 0)
        exchange(own, shift + tile, a, b, d, place.diagonal, false, sums, cross);

    // Matrix i of a load: rows i / 2 * 8 on, features i % 2 * 8 on.
    const unsigned offset = tensor::shared_address(planes) +
                            static_cast<unsigned>(((lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8) * 2);
    float4 ahead[loads];
    load_part(loader, 2 * run.stage, ahead);
    bool outside = store_part(loader, ahead, planes);
    std::int32_t told = 0;
    for (std::int64_t stage = run.stage; stage * half_stage_rows < run.n_rows; stage += segment.count) {
        for (int part = 0; part < 2; ++part) {
            load_part(loader, part == 0 ? 2 * stage + 1 : 2 * (stage + segment.count), ahead);
            if (__syncthreads_or(told) != 0)
                return;
            told = threadIdx.x == 0 ? *const_cast<const volatile std::int32_t *>(out.stop) : 0;
            const unsigned from = offset + static_cast<unsigned>(part * buffer_halves * 2);
            if (a < d && b < d)
#pragma unroll 1
                for (int row = 0; row < rows_at_once; row += 16)
                    add_sixteen(own, from + static_cast<unsigned>((row * stride + a) * 2),
                                from + static_cast<unsigned>((row * stride + b) * 2), place.diagonal);
            outside |= store_part(loader, ahead, planes + (1 - part) * buffer_halves);
        }
        flush(own);
    }
    exchange(own, shift + tile, a, b, d, place.diagonal, true, sums, cross);
    if (outside)
        scales.overflow[segment.problem] = 1;
}

} // namespace

void add_half_products(Context &context, const float *values, int d, const Segment *segments, std::int64_t n_segments,
                       const Chunk &chunk, const Sums &sums, const HalfScales &scales)
{
    if (context.facts.capability == 90)
        return add_wgmma_products(context, values, d, segments, n_segments, chunk, sums, scales);
    checked("cudaFuncSetAttribute",
            [&] { return allow_shared_memory(half_kernel, shared_bytes); });
    half_kernel<<<static_cast<unsigned>(n_segments), threads, shared_bytes, context.compute.get()>>>(values, d, segments,
                                                                                                chunk, sums, scales);
    launched("half_kernel");
}

} // namespace pgkm::cuda::moments
