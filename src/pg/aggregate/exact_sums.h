/*
 * exact_sums.h - sums of float64 values, and of their products, without any rounding.
 *
 * A sum is one long integer, in units of a power of two, as Kulisch's accumulator is. So the order of the terms does
 * not count, and neither large nor small terms lose digits. The sums of one set share a window of 64-bit words on the
 * absolute scale of float64. It holds the digits of the terms that came, and grows with them: usually two or three
 * words, at most 35 for values, and 102 for products with weights.
 */
#ifndef PGKM_PG_AGGREGATE_EXACT_SUMS_H
#define PGKM_PG_AGGREGATE_EXACT_SUMS_H

#include "pg/compat.h"

struct ExactSums {
    MemoryContext context;
    int32 count;
    int32 first;   /* the lowest bit of a sum is worth 2^(64 first) */
    int32 n_words; /* of a sum; the highest has no digits of a term, but room for carries of 2^63 terms */
    uint64 *words; /* count x n_words, two's complement, the lowest word first; NULL while all sums are 0 */
};

/* `count` sums of 0, which take no memory yet. */
void exact_sums_init(ExactSums *sums, MemoryContext context, int32 count);

/* Sets all sums to 0. The window stays. */
void exact_sums_clear(ExactSums *sums);

/* Adds weight x value, or weight x a x b, to sum i; all finite. */
void exact_sums_add(ExactSums *sums, int32 i, double weight, double value);
void exact_sums_add_triple(ExactSums *sums, int32 i, double weight, double a, double b);

/* to[0] += factor x from[i], for a finite factor. Both must not be one. */
void exact_sums_add_multiple(ExactSums *to, const ExactSums *from, int32 i, double factor);

/* to[0] += sign x a[0] x b[0], where sign is 1 or -1. */
void exact_sums_add_product(ExactSums *to, const ExactSums *a, const ExactSums *b, int sign);

/* Sum i divided by a finite divisor above 0, rounded once to float64: an infinity beyond its range. */
double exact_sums_quotient(const ExactSums *sums, int32 i, double divisor);

#endif
