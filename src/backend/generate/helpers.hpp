// helpers.hpp (generate) - the device functions that each text begins with. `own` says whether a copy of R is changed
// by one thread alone, `in_block` whether it is shared memory.
#pragma once

namespace pgkm::generate {

inline constexpr const char *helper_functions = R"(
typedef unsigned long long Word;

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000); }
__device__ __forceinline__ bool finite(double x) { return fabs(x) < infinity(); }
__device__ __forceinline__ Word bits(double x) { return __double_as_longlong(x); }
__device__ __forceinline__ double value(Word w) { return __longlong_as_double(w); }

// x, a whole number in 0 .. end - 1; else -1.
__device__ __forceinline__ long long place(double x, long long end)
{
    return x >= 0.0 && x < double(end) && x == floor(x) ? (long long)x : -1;
}

// Bits in the order of the numbers; -0 as 0.
__device__ __forceinline__ Word ordered(double x)
{
    const Word w = bits(x + 0.0), sign = 1ull << 63;
    return (w & sign) != 0 ? ~w : w | sign;
}

// How words come together; a key goes with the value before it.
enum Kind { sum, integer, least, greatest, argmin, key };

__device__ __forceinline__ Word identity(Kind kind) { return kind == least || kind >= argmin ? ~0ull : 0ull; }

__device__ __forceinline__ void join(Kind kind, Word &to, Word from, Word &to_key, Word from_key)
{
    if (kind == sum)
        to = bits(value(to) + value(from));
    else if (kind == integer)
        to += from;
    else if (kind == greatest)
        to = max(to, from);
    else if (kind == argmin && (from < to || (from == to && from_key < to_key)))
        to_key = from_key;
    if (kind == least || kind == argmin)
        to = min(to, from);
}

__device__ __forceinline__ void fence()
{
    if (in_block)
        __threadfence_block();
    else
        __threadfence();
}

// Shared memory adds 32 bits by itself, 64 in a loop. `alone`: no other thread changes the word.
__device__ __forceinline__ void add_word(Word *to, Word x, bool alone = own)
{
    if (alone) {
        *to += x;
    } else if (in_block) {
        unsigned *const half = (unsigned *)to;
        const unsigned low = unsigned(x), high = unsigned(x >> 32) + (atomicAdd(half, low) > ~low ? 1 : 0);
        if (high != 0)
            atomicAdd(half + 1, high);
    } else {
        atomicAdd(to, x);
    }
}

// To one place for all rows: by one thread of those of a warp that run together.
__device__ __forceinline__ void count_row(Word *to, bool for_all)
{
    const unsigned active = own || !for_all ? 0 : __activemask();
    if (active == 0)
        add_word(to, 1);
    else if (int(threadIdx.x % 32) == __ffs(active) - 1)
        add_word(to, __popc(active));
}

__device__ __forceinline__ void add(Word *to, double x, bool alone = own)
{
    if (alone)
        *to = bits(value(*to) + x);
    else
        atomicAdd((double *)to, x);
}

// A scaled integer in two limbs, of 23 bits and the rest: sums of them cannot overflow.
__device__ __forceinline__ void add_integer(Word *to, long long step, long long x, bool alone = own)
{
    add_word(to, x & 0x7fffff, alone);
    add_word(to + step, x >> 23, alone);
}
__device__ __forceinline__ long long scaled(double x, double scale) { return (long long)rint(x * scale); }

__device__ __forceinline__ void take_least(Word *to, double x)
{
    const Word w = ordered(x);
    if (w >= *(volatile Word *)to)
        return;
    if (own)
        *to = w;
    else
        atomicMin(to, w);
}
__device__ __forceinline__ void take_greatest(Word *to, double x)
{
    const Word w = ordered(x);
    if (w <= *(volatile Word *)to)
        return;
    if (own)
        *to = w;
    else
        atomicMax(to, w);
}

__device__ __forceinline__ void raise(Word *largest, double x)
{
    if (bits(fabs(x)) > *(volatile Word *)largest)
        atomicMax(largest, bits(fabs(x)));
}

// The least value, and the least key of that value. No number has ordered bits 0: who puts 0 in the place of the value
// may write the key. A value only falls, and the key of one value only falls, so that an old one decides nothing wrongly.
__device__ __forceinline__ void take_argmin(Word *to, long long step, double x, double of)
{
    const Word v = ordered(x), k = ordered(of), locked = 0;
    if (own)
        return join(argmin, to[0], v, to[step], k);
    for (;;) {
        const Word before = *(volatile Word *)to;
        if (before == locked)
            continue;
        if (before < v)
            return;
        fence();
        if (before == v && *(volatile Word *)(to + step) <= k)
            return;
        if (atomicCAS(to, before, locked) != before)
            continue;
        fence();
        if (v < before || k < *(volatile Word *)(to + step))
            *(volatile Word *)(to + step) = k;
        fence();
        atomicExch(to, v);
        return;
    }
}
)";

} // namespace pgkm::generate
