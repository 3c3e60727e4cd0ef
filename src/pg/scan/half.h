/*
 * half.h - IEEE half precision, as pgvector's halfvec stores it.
 */
#ifndef PGKM_PG_SCAN_HALF_H
#define PGKM_PG_SCAN_HALF_H

extern "C" {
#include "postgres.h"
}

/* Converts `count` halves from unaligned memory, exactly. Returns whether all are finite. */
static inline bool scan_halves_to_floats(const char *halves, int32 count, float *out)
{
    bool finite = true;

    for (int32 i = 0; i < count; ++i) {
        uint16 half;

        memcpy(&half, halves + i * sizeof(uint16), sizeof half);

        const uint32 sign = (uint32)(half & 0x8000) << 16;
        const uint32 exponent = (half >> 10) & 0x1f;
        const uint32 fraction = half & 0x3ff;
        uint32 bits = sign | (exponent + 112) << 23 | fraction << 13;

        if (exponent == 0x1f) { /* infinite or NaN */
            bits = sign | 0x7f800000 | fraction << 13;
            finite = false;
        }
        memcpy(&out[i], &bits, sizeof bits);
        if (exponent == 0) /* zero or subnormal: so many times 2^-24 */
            out[i] = (sign != 0 ? -0x1p-24f : 0x1p-24f) * (float)fraction;
    }
    return finite;
}

#endif
