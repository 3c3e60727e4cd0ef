/*
 * feature_scale.h - how the values of a feature become integers; contract.hpp's sum_scale() makes it.
 */
#ifndef PGKM_NUMERIC_FEATURE_SCALE_H
#define PGKM_NUMERIC_FEATURE_SCALE_H

#include <stdint.h>

/* A value x stands for the integer nearest to (x - origin) * 2^exponent. */
typedef struct PgkmFeatureScale {
    double origin;
    int32_t exponent;
} PgkmFeatureScale;

#endif
