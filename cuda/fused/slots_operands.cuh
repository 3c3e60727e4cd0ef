// slots_operands.cuh - both sides of the slots kernel's products: centroids in shared memory, rows
// in registers (slots.cu says how they fit together).
#pragma once

#include "device/halves.cuh"
#include "fused/later_rows.cuh"
#include "plan/choose.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int later_words = warps * LaterRows::capacity * 2;
constexpr float unreachable = 60000.0f; // above every score, within fp16

// Tiles of eight centroids, padded to a multiple of the T whose scores are in registers at a time.
template <int T>
__host__ __device__ inline int tiles_of(int k)
{
    return (k + 8 * T - 1) / (8 * T) * T;
}

struct Shared {
    uint2 *slots;        // tiles x F x lanes: the centroids' side of the products
    double *squares;     // tiles x 8: |c'|^2
    float *values;       // tiles x 8 x 4 F: -c', where groups are looked into again
    float *constants;    // tiles x 8: h + b
    Later::Entry *later; // of this warp
    std::int32_t *counters;
};

template <int F, int T>
__host__ __device__ inline std::size_t operand_bytes(int k)
{
    const std::size_t again = k > held_columns ? 32 * (4 * F + 1) : 0;
    return static_cast<std::size_t>(tiles_of<T>(k)) * (F * 256 + 64 + again);
}

template <int F, int T>
__device__ Shared carve(const MoveArguments &a)
{
    std::int32_t *memory = shared_words(0);
    const int tiles = tiles_of<T>(a.view.k);
    Shared s;
    s.slots = reinterpret_cast<uint2 *>(memory);
    s.squares = reinterpret_cast<double *>(s.slots + tiles * F * 32);
    s.values = reinterpret_cast<float *>(s.squares + tiles * 8);
    s.constants = s.values + (a.view.k > held_columns ? tiles * 8 * 4 * F : 0);
    float *end = s.constants + (a.view.k > held_columns ? tiles * 8 : 0);
    s.later = reinterpret_cast<Later::Entry *>(end) + threadIdx.x / 32 * LaterRows::capacity;
    s.counters = reinterpret_cast<std::int32_t *>(end) + later_words;
    return s;
}

template <int F, int T>
std::size_t shared_bytes(const MoveArguments &a)
{
    return operand_bytes<F, T>(a.view.k) + later_words * 4 +
           (a.labels != nullptr ? 0 : MoveCounters::bytes(a.view.k, a.view.d, 1));
}

// The centroids' slots (negated: products are subtracted) and the scale, by the whole block.
template <int F, int T>
__device__ HalfScale prepare(const MoveArguments &a, const Shared &shared)
{
    __shared__ unsigned reach;
    const int d = a.view.d, k = a.view.k, tiles = tiles_of<T>(k);
    if (threadIdx.x == 0)
        reach = 0;
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.x); j < k; j += threads) {
        double square = 0.0;
        for (int f = 0; f < d; ++f) {
            const double centred = static_cast<double>(a.view.centroids[j * d + f] - a.shift[f]);
            square += centred * centred;
        }
        shared.squares[j] = square;
        atomicMax(&reach, __float_as_uint(__double2float_ru(sqrt(square) * (1.0 + 0x1p-40)))); // NaN is the largest
    }
    __syncthreads();
    HalfScale scale = half_scale(a.reach, __uint_as_float(reach));
    scale.margin = 2.04f * half_error(a.reach * scale.scale, __uint_as_float(reach) * scale.scale, scale.bias, d, F);
    for (int i = static_cast<int>(threadIdx.x); i < tiles * F * 32; i += threads) {
        const int lane = i & 31, step = (i >> 5) % F, j = (i >> 5) / F * 8 + lane / 4, f = (lane & 3) * F + step;
        const float value = j < k && f < d ? (a.shift[f] - a.view.centroids[j * d + f]) * scale.scale : 0.0f;
        const double factor = static_cast<double>(scale.scale) * static_cast<double>(scale.scale) / 2;
        float constant = j < k ? static_cast<float>(shared.squares[j] * factor) + scale.bias : unreachable;
        for (int piece = 0; piece < (lane & 3); ++piece)
            constant -= upper_half(constant);
        const float first = upper_half(value);
        shared.slots[i] = {pack_halves(first, first), pack_halves(value - first, step == 0 ? constant : 0.0f)};
    }
    const double factor = static_cast<double>(scale.scale) * static_cast<double>(scale.scale) / 2;
    for (int i = static_cast<int>(threadIdx.x); k > held_columns && i < tiles * 8 * 4 * F; i += threads) {
        const int j = i / (4 * F), f = i % (4 * F);
        shared.values[i] = j < k && f < d ? (a.shift[f] - a.view.centroids[j * d + f]) * scale.scale : 0.0f;
        if (f == 0)
            shared.constants[j] = j < k ? static_cast<float>(shared.squares[j] * factor) + scale.bias : unreachable;
    }
    __syncthreads();
    return scale;
}

// A lane's values of the rows of M strips. When the rows' candidates are known each lane sees to
// one row: half q % 2 of strip q / 2 for lane q of the quad that shares it.
template <int F, int M>
struct Rows {
    float x[M][2][F];
    int last; // label of the lane's own row
};

__device__ inline int own_row(int first)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    return first + (lane & 2) * 8 + (lane & 1) * 8 + lane / 4;
}

template <int F, int M, bool Narrow, bool Labels>
__device__ void load(const MoveArguments &a, int first, Rows<F, M> &rows)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = a.view.d, f = (lane & 3) * F;
    const int most = static_cast<int>(a.view.n) - 1, own = min(own_row(first), most);
    if constexpr (!Labels)
        rows.last = Narrow ? static_cast<const std::uint8_t *>(a.last.values)[own] : a.last.get(own);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = min(first + m * 16 + h * 8 + lane / 4, most);
            const float *from = a.view.values + (row * d + f); // a launch has fewer than 2^31 values
            if (F == 2 && d == 8) {
                *reinterpret_cast<float2 *>(rows.x[m][h]) = *reinterpret_cast<const float2 *>(from);
            } else if (F == 4 && d == 16) {
                *reinterpret_cast<float4 *>(rows.x[m][h]) = *reinterpret_cast<const float4 *>(from);
            } else {
#pragma unroll
                for (int i = 0; i < F; ++i)
                    rows.x[m][h][i] = f + i < d ? from[i] : 0.0f;
            }
        }
}

// The rows' side of the products of one strip.
template <int F>
__device__ void split(const float (&x)[2][F], const float (&shift)[F], float scale, unsigned (&slots)[F][4])
{
#pragma unroll
    for (int i = 0; i < F; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float value = __fmaf_rn(x[h][i], scale, -shift[i]); // shift is scaled already
            const float first = upper_half(value);
            slots[i][h] = pack_halves(first, value - first);
            slots[i][2 + h] = pack_halves(first, i == 0 ? 1.0f : 0.0f);
        }
}

} // namespace
} // namespace pgkm::cuda
