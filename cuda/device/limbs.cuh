// limbs.cuh - the integer of a float32 value in two 23-bit limbs without 64-bit arithmetic, and how sums take limbs.
#pragma once

#include "device/view.cuh"

namespace pgkm::cuda {

// 1.5 x 2^23: adding it rounds to an integer that then stands in the low bits.
inline constexpr float rounding_magic = 12582912.0f;
inline constexpr int rounding_bits = 0x4B400000;

// Scale factors of a feature as float32, for an exponent s.
struct FloatScale {
    float whole;   // 2^s
    float high;    // 2^(s - 23)
    float inverse; // -2^(23 - s)
};

// Whether all factors are normal float32 numbers.
__host__ __device__ inline bool has_float_scale(int exponent)
{
    return exponent >= -100 && exponent <= 120;
}

__device__ inline FloatScale float_scale(int exponent)
{
    return {__int_as_float((exponent + 127) << 23), __int_as_float((exponent - limb_bits + 127) << 23),
            -__int_as_float((limb_bits - exponent + 127) << 23)};
}

// rint(x 2^s) = hi 2^23 + lo. hi = rint(x 2^(s - 23)) is one fma that rounds once; what is left,
// x - hi 2^(23 - s), is exact (a multiple of x's last place, and at most half of 2^(23 - s));
// lo rounds it once at its scale, and since hi 2^23 is an even integer the sum is rint(x 2^s),
// ties included. |hi|, |lo| <= 2^22.
__device__ inline Split float_limbs(float x, const FloatScale &scale)
{
    const float high = __fmaf_rn(x, scale.high, rounding_magic);
    const float rest = __fmaf_rn(high - rounding_magic, scale.inverse, x);
    return {__float_as_int(high) - rounding_bits,
            __float_as_int(__fmaf_rn(rest, scale.whole, rounding_magic)) - rounding_bits};
}

__device__ inline void add_word(std::int64_t *sum, std::int64_t value)
{
    add64(sum, value);
}
__device__ inline void add_word(std::int32_t *counter, std::int32_t value)
{
    atomicAdd(counter, value);
}

// Adds limbs to the two words of a sum, of 64 bits, or of 32 where so few are added that none overflows.
template <typename Word>
__device__ inline void add_limbs(Word *sum, const Split &limbs)
{
    if (limbs.hi != 0)
        add_word(sum, limbs.hi);
    add_word(sum + 1, limbs.lo);
}

// Adds an integer of 64 bits to the two words of a sum.
__device__ inline void add_integer(std::int64_t *sum, std::int64_t value)
{
    const std::int64_t hi = value >> limb_bits;
    add64(sum, hi);
    add64(sum + 1, value - hi * (std::int64_t{1} << limb_bits));
}

// Adds a row's squared distance, times its weight, to the first four words of a cluster's: of the contract's two limbs
// two each. And one to the fifth, which counts rows. A word takes square_additions of 32 bits.
inline constexpr int square_additions = 255; // of at most 2^23
template <typename Word>
__device__ inline void add_square(Word *sums, double square, double scale)
{
    const Limbs limbs = quantise_square(square, scale);
    add_limbs(sums, split_limbs(limbs.hi));
    add_limbs(sums + 2, split_limbs(limbs.lo));
    add_word(sums + 4, 1);
}

// The same of so many equal rows.
__device__ inline void add_squares(std::int64_t *sums, double square, double scale, int copies)
{
    const Limbs limbs = quantise_square(square, scale);
    add_integer(sums, limbs.hi * copies);
    add_integer(sums + 2, limbs.lo * copies);
    add64(sums + 4, copies);
}

// Adds a block's counters to 64-bit sums, the i-th one to *sum(i), and clears them; the whole block, which waits for
// itself before and after.
template <int Threads, typename Sum>
__device__ inline void flush_counters(std::int32_t *counters, int count, Sum &&sum)
{
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += Threads) {
        if (counters[i] != 0)
            add64(sum(i), counters[i]);
        counters[i] = 0;
    }
    __syncthreads();
}

} // namespace pgkm::cuda
