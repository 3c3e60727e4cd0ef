// helpers.cpp (generate) - device functions as they stand in each text.
#include "backend/generate/helpers.hpp"

#include <algorithm>

namespace pgkm::generate {
namespace {

constexpr const char *common = R"(
__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000); }
__device__ __forceinline__ bool finite(double x) { return fabs(x) < infinity(); }

// x, a whole number in 0 .. end - 1; else -1.
__device__ __forceinline__ long long place(double x, long long end)
{
    return x >= 0.0 && x < double(end) && x == floor(x) ? (long long)x : -1;
}

__device__ __forceinline__ Word bits(double x) { return __double_as_longlong(x); }
__device__ __forceinline__ double value(Word w) { return __longlong_as_double(w); }

// Bits in the order of the numbers; -0 as 0.
__device__ __forceinline__ Word ordered(double x)
{
    const Word w = bits(x + 0.0), sign = 1ull << 63;
    return (w & sign) != 0 ? ~w : w | sign;
}
)";

constexpr const char *own_count = R"(
__device__ __forceinline__ void count(Word *to) { *to += 1; }
)";
constexpr const char *own_add = R"(
__device__ __forceinline__ void add(Word *to, double x) { *to = bits(value(*to) + x); }
)";
constexpr const char *own_least = R"(
__device__ __forceinline__ void least(Word *to, double x) { *to = min(*to, ordered(x)); }
)";
constexpr const char *own_greatest = R"(
__device__ __forceinline__ void greatest(Word *to, double x) { *to = max(*to, ordered(x)); }
)";
constexpr const char *own_integer = R"(
// The scaled integer of x in two limbs, of 23 bits and the rest: sums of them cannot overflow.
__device__ __forceinline__ void add_integer(Word *to, long long step, double x, double scale)
{
    const long long q = (long long)rint(x * scale);
    to[0] += q & 0x7fffff;
    to[step] += q >> 23;
}
)";
constexpr const char *own_argmin = R"(
// The least value, and the least key of that value.
__device__ __forceinline__ void argmin(Word *to, long long step, double x, double key)
{
    const Word v = ordered(x), k = ordered(key);
    if (v < to[0] || (v == to[0] && k < to[step])) {
        to[0] = v;
        to[step] = k;
    }
}
)";

constexpr const char *word_of_device = R"(
__device__ __forceinline__ void add_word(Word *to, Word x) { atomicAdd(to, x); }
)";
constexpr const char *word_of_block = R"(
// Shared memory adds 32 bits by itself, 64 in a loop.
__device__ __forceinline__ void add_word(Word *to, Word x)
{
    unsigned *const half = (unsigned *)to;
    const unsigned low = unsigned(x), high = unsigned(x >> 32) + (atomicAdd(half, low) > ~low ? 1 : 0);
    if (high != 0)
        atomicAdd(half + 1, high);
}
)";
constexpr const char *shared_count = R"(
__device__ __forceinline__ void count(Word *to) { add_word(to, 1); }

// To one place for all rows: by one thread of those of a warp that run together.
__device__ __forceinline__ void count_all(Word *to)
{
    const unsigned active = __activemask();
    if (int(threadIdx.x % 32) == __ffs(active) - 1)
        add_word(to, __popc(active));
}
)";
constexpr const char *shared_add = R"(
__device__ __forceinline__ void add(Word *to, double x) { atomicAdd((double *)to, x); }
)";
constexpr const char *shared_least = R"(
__device__ __forceinline__ void least(Word *to, double x)
{
    const Word w = ordered(x);
    if (w < *(volatile Word *)to)
        atomicMin(to, w);
}
)";
constexpr const char *shared_greatest = R"(
__device__ __forceinline__ void greatest(Word *to, double x)
{
    const Word w = ordered(x);
    if (w > *(volatile Word *)to)
        atomicMax(to, w);
}
)";
constexpr const char *shared_integer = R"(
// The scaled integer of x in two limbs, of 23 bits and the rest: sums of them cannot overflow.
__device__ __forceinline__ void add_integer(Word *to, long long step, double x, double scale)
{
    const long long q = (long long)rint(x * scale);
    add_word(to, q & 0x7fffff);
    add_word(to + step, q >> 23);
}
)";
constexpr const char *fence_of_block = R"(
__device__ __forceinline__ void fence() { __threadfence_block(); }
)";
constexpr const char *fence_of_device = R"(
__device__ __forceinline__ void fence() { __threadfence(); }
)";
constexpr const char *shared_argmin = R"(
// The least value, and the least key of that value. No number has ordered bits 0: who puts 0 in the place of the value
// may write the key. A value only falls, and the key of one value only falls, so that an old one decides nothing wrongly.
__device__ __forceinline__ void argmin(Word *to, long long step, double x, double key)
{
    const Word v = ordered(x), k = ordered(key), locked = 0;
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

} // namespace

std::string helper_functions(const Plan &plan)
{
    const bool own = plan.is_per_thread();
    const auto has = [&](PgkmCombine combine, bool integer) {
        return std::any_of(plan.outputs.begin(), plan.outputs.end(), [&](const Output &output) {
            return output.combine == combine && output.integer == integer;
        });
    };
    std::string text = common;
    if (!own)
        text += plan.layout == Layout::global ? word_of_device : word_of_block;
    text += own ? own_count : shared_count;
    if (has(PGKM_COMBINE_SUM, false))
        text += own ? own_add : shared_add;
    if (has(PGKM_COMBINE_SUM, true))
        text += own ? own_integer : shared_integer;
    if (has(PGKM_COMBINE_MIN, false))
        text += own ? own_least : shared_least;
    if (has(PGKM_COMBINE_MAX, false))
        text += own ? own_greatest : shared_greatest;
    if (has(PGKM_COMBINE_ARGMIN, false))
        text += own ? own_argmin
                    : std::string(plan.layout == Layout::global ? fence_of_device : fence_of_block) + shared_argmin;
    return text;
}

} // namespace pgkm::generate
