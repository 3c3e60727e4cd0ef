/*
 * exact_sums.cpp - long integers on the scale of float64: terms added, multiplied, rounded once.
 */
#include "pg/aggregate/exact_sums.h"

#include <bit>
#include <cmath>

extern "C" {
#include "utils/memutils.h"
}

#define WORD_BITS 64
/* More than products of two sums of weighted values span. */
#define MOST_WORDS 160

/* sign x magnitude x 2^exponent */
struct Term {
    uint128 magnitude;
    int exponent;
    bool negative;
};

/* Of a finite value. */
static Term term_of(double value)
{
    const uint64 bits = std::bit_cast<uint64>(value);
    const uint64 fraction = bits & ((UINT64CONST(1) << 52) - 1);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    const bool negative = bits >> 63 != 0;

    if (exponent == 0) /* subnormal */
        return {fraction, -1074, negative};
    return {fraction | UINT64CONST(1) << 52, exponent - 1075, negative};
}

void exact_sums_init(ExactSums *sums, MemoryContext context, int32 count)
{
    sums->context = context;
    sums->count = count;
    sums->first = 0;
    sums->n_words = 0;
    sums->words = NULL;
}

void exact_sums_clear(ExactSums *sums)
{
    if (sums->words != NULL)
        memset(sums->words, 0, (Size)sums->count * sums->n_words * sizeof(uint64));
}

static bool is_negative(const uint64 *words, int32 n_words)
{
    return words[n_words - 1] >> (WORD_BITS - 1) != 0;
}

/* Widens the window to the words from `low` to `high`, and one for carries. */
static void widen(ExactSums *sums, int32 low, int32 high)
{
    const int32 first = sums->words == NULL ? low : Min(low, sums->first);
    const int32 end = sums->words == NULL ? high + 2 : Max(high + 2, sums->first + sums->n_words);
    const int32 n_words = end - first;
    const Size bytes = (Size)sums->count * n_words * sizeof(uint64);

    Assert(n_words <= MOST_WORDS);

    uint64 *const words = (uint64 *)MemoryContextAllocHuge(sums->context, bytes);

    memset(words, 0, bytes);
    if (sums->words != NULL) {
        for (int32 i = 0; i < sums->count; ++i) {
            const uint64 *const from = sums->words + (Size)i * sums->n_words;
            uint64 *const to = words + (Size)i * n_words + (sums->first - first);

            memcpy(to, from, sums->n_words * sizeof(uint64));
            if (is_negative(from, sums->n_words))
                memset(to + sums->n_words, 0xff, (end - sums->first - sums->n_words) * sizeof(uint64));
        }
        pfree(sums->words);
    }
    sums->first = first;
    sums->n_words = n_words;
    sums->words = words;
}

static inline void add(ExactSums *sums, int32 i, Term term)
{
    if (term.magnitude == 0)
        return;

    int32 low = term.exponent >> 6; /* rounded down, whatever the sign */
    const int shift = term.exponent & (WORD_BITS - 1);
    const uint128 above = term.magnitude >> (WORD_BITS - shift);
    const uint64 parts[] = {(uint64)term.magnitude << shift, (uint64)above, (uint64)(above >> WORD_BITS)};
    const uint64 *part = parts;
    int32 n_parts = lengthof(parts);

    for (; *part == 0; ++part, --n_parts)
        ++low;
    while (part[n_parts - 1] == 0)
        --n_parts;
    if (sums->words == NULL || low < sums->first || low + n_parts >= sums->first + sums->n_words)
        widen(sums, low, low + n_parts - 1);

    /* The negative of a term is its complement plus one. Above its words that is all ones and a carry, or nothing. */
    const uint64 flip = term.negative ? ~UINT64CONST(0) : 0;
    const uint128 at_rest = term.negative ? 1 : 0;
    uint64 *const words = sums->words + (Size)i * sums->n_words;
    uint128 carry = at_rest;

    for (int32 w = low - sums->first; w < sums->n_words && (n_parts > 0 || carry != at_rest); ++w, --n_parts) {
        carry += (uint128)words[w] + ((n_parts > 0 ? *part++ : 0) ^ flip);
        words[w] = (uint64)carry;
        carry >>= WORD_BITS;
    }
}

/* The same with a magnitude as small as can be: 1 for a power of two. */
static Term short_term_of(double value)
{
    const Term term = term_of(value);
    const int zeros = term.magnitude == 0 ? 0 : std::countr_zero((uint64)term.magnitude);

    return {term.magnitude >> zeros, term.exponent + zeros, term.negative};
}

void exact_sums_add(ExactSums *sums, int32 i, double weight, double value)
{
    const Term factor = short_term_of(weight);
    const Term term = term_of(value);

    add(sums, i,
        {factor.magnitude * term.magnitude, factor.exponent + term.exponent, factor.negative != term.negative});
}

void exact_sums_add_triple(ExactSums *sums, int32 i, double weight, double a, double b)
{
    const Term factor = short_term_of(weight);
    const Term first = term_of(a);
    const Term second = term_of(b);
    const uint128 product = first.magnitude * second.magnitude; /* up to 106 bits */
    const int exponent = factor.exponent + first.exponent + second.exponent;
    const bool negative = factor.negative != (first.negative != second.negative);

    if (factor.magnitude == 1) {
        add(sums, i, {product, exponent, negative});
        return;
    }
    add(sums, i, {factor.magnitude * (uint64)product, exponent, negative});
    add(sums, i, {factor.magnitude * (product >> WORD_BITS), exponent + WORD_BITS, negative});
}

/* A sum's absolute value, and its sign. */
struct Magnitude {
    bool negative;
    uint64 words[MOST_WORDS];
};

static void read_magnitude(const ExactSums *sums, int32 i, Magnitude *magnitude)
{
    const uint64 *const words = sums->words + (Size)i * sums->n_words;

    magnitude->negative = is_negative(words, sums->n_words);

    const uint64 flip = magnitude->negative ? ~UINT64CONST(0) : 0;
    uint128 carry = magnitude->negative ? 1 : 0;

    for (int32 w = 0; w < sums->n_words; ++w) {
        carry += words[w] ^ flip;
        magnitude->words[w] = (uint64)carry;
        carry >>= WORD_BITS;
    }
}

/* A factor of at most 64 bits. */
static void add_product(ExactSums *to, const ExactSums *from, int32 i, Term factor)
{
    if (from->words == NULL)
        return;

    Magnitude value;

    read_magnitude(from, i, &value);
    for (int32 w = 0; w < from->n_words; ++w)
        add(to, 0,
            {factor.magnitude * value.words[w], factor.exponent + WORD_BITS * (from->first + w),
             value.negative != factor.negative});
}

void exact_sums_add_multiple(ExactSums *to, const ExactSums *from, int32 i, double factor)
{
    add_product(to, from, i, term_of(factor));
}

void exact_sums_add_product(ExactSums *to, const ExactSums *a, const ExactSums *b, int sign)
{
    Magnitude value;

    if (a->words == NULL)
        return;
    read_magnitude(a, 0, &value);
    for (int32 w = 0; w < a->n_words; ++w)
        add_product(to, b, 0, {value.words[w], WORD_BITS * (a->first + w), value.negative != (sign < 0)});
}

double exact_sums_quotient(const ExactSums *sums, int32 i, double divisor)
{
    const Term by = short_term_of(divisor); /* of 53 bits at most */

    if (sums->words == NULL)
        return 0;

    Magnitude value;
    int32 top = sums->n_words - 1;

    read_magnitude(sums, i, &value);
    while (top > 0 && value.words[top] == 0)
        --top;
    if (value.words[top] == 0)
        return 0;

    /* 128 leading bits, of which as many are left as 53 need, whatever the divisor. The lowest bit also stands for all
     * that follows: it tells half from more than half. */
    const auto word = [&](int32 w) -> uint64 { return w < 0 ? 0 : value.words[w]; };
    const int shift = std::countl_zero(value.words[top]);
    uint128 leading = ((uint128)value.words[top] << WORD_BITS | word(top - 1)) << shift;
    bool lost = word(top - 2) << shift != 0;

    if (shift > 0)
        leading |= word(top - 2) >> (WORD_BITS - shift);
    for (int32 w = 0; w < top - 2 && !lost; ++w)
        lost = value.words[w] != 0;
    lost = lost || leading % by.magnitude != 0;

    const double quotient = std::ldexp((double)(leading / by.magnitude | (lost ? 1 : 0)),
                                       WORD_BITS * (sums->first + top - 1) - shift - by.exponent);

    return value.negative ? -quotient : quotient;
}
