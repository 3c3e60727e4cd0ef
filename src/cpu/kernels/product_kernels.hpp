// product_kernels.hpp - blocks of rows turned feature by feature, and sums of products over
// them: what the covariances of PCA and of Gaussian mixtures are made of.
//
// A block holds value (r, f) at f * stride + r, so that vector lanes run along the rows
// whatever the number of features. Rows are padded with zeros to stride, a multiple of
// row_padding. Tiles read beyond the last feature, so there is room for padded_features(d) of
// them; what stands there, any finite values, reaches no result.
#pragma once

#include <cstdint>

#include "backend/covariance.hpp"
#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "numeric/reduction.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

inline constexpr int row_padding = 8; // lanes of the widest vector

inline constexpr int padded_rows(std::int64_t rows)
{
    return static_cast<int>((rows + row_padding - 1) / row_padding * row_padding);
}

// Whole tiles of 4 x 3 features.
inline constexpr std::int64_t padded_features(std::int64_t d)
{
    return (d + 11) / 12 * 12;
}

// Features from a multiple of this on have whole tiles.
inline constexpr std::int32_t feature_panel = 12;

struct ProductKernels {
    // block[f, r] = x[r, f] - shift[f] for `rows` rows of d values, row-major; zeros in the padding.
    template <typename T>
    using Turn = void(const T *x, std::int64_t rows, std::int32_t d, const double *shift, double *block, int stride);
    ForElements<Turn> turn;
    // sums[f] += sum over r of block[f, r]
    void (*add_rows)(const double *block, int stride, std::int32_t d, double *sums);
    // triangle[a, b] (triangle_size()) += sum over r of left[a, r] * right[b, r] for features b <= a, first <= a < last
    void (*add_products)(const double *left, const double *right, int stride, std::int32_t first, std::int32_t last,
                         double *triangle);
};

const ProductKernels &product_kernels(InstructionSet set);

} // namespace pgkm::cpu
