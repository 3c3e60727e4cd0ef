// product_kernels.cpp - turns rows feature by feature; tiles of 4 x 3 sums of products, lanes along rows.
#include "cpu/kernels/product_kernels.hpp"

#include <algorithm>

#define HWY_TARGET_INCLUDE "cpu/kernels/product_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// Features a of a tile, and features b: 12 sums, 3 loads and 1 factor fill 16 registers.
inline constexpr int tile_left = 4;
inline constexpr int tile_right = 3;
// Features b that stay in the second-level cache while all a pass by.
inline constexpr std::int32_t cached_right = 48;

template <typename T>
void turn(const T *x, std::int64_t rows, std::int32_t d, const double *shift, double *block, int stride)
{
    // A few features at a time, so that the lines they are written to stay in L1.
    constexpr std::int32_t panel = 16;
    for (std::int32_t first = 0; first < d; first += panel) {
        const std::int32_t last = std::min(d, first + panel);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int32_t f = first; f < last; ++f)
                block[std::int64_t{f} * stride + r] = static_cast<double>(x[r * d + f]) - shift[f];
        for (std::int32_t f = first; f < last; ++f)
            std::fill(block + std::int64_t{f} * stride + rows, block + std::int64_t{f + 1} * stride, 0.0);
    }
}

void add_rows(const double *block, int stride, std::int32_t d, double *sums)
{
    for (std::int32_t f = 0; f < d; ++f) {
        Vector sum = hn::Zero(tag);
        for (int r = 0; r < stride; r += lanes)
            sum = hn::Add(sum, hn::LoadU(tag, block + std::int64_t{f} * stride + r));
        sums[f] += total(sum);
    }
}

// The 12 sums of products of one tile.
struct Tile {
    double sum[tile_left][tile_right];
};

HWY_INLINE Tile multiply(const double *left, const double *right, int stride)
{
    Vector sums[tile_left][tile_right];
#pragma GCC unroll 4
    for (int i = 0; i < tile_left; ++i)
#pragma GCC unroll 3
        for (int j = 0; j < tile_right; ++j)
            sums[i][j] = hn::Zero(tag);
    for (int r = 0; r < stride; r += lanes) {
        const Vector b0 = hn::LoadU(tag, right + r), b1 = hn::LoadU(tag, right + stride + r);
        const Vector b2 = hn::LoadU(tag, right + 2 * stride + r);
#pragma GCC unroll 4
        for (int i = 0; i < tile_left; ++i) {
            const Vector a = hn::LoadU(tag, left + i * stride + r);
            sums[i][0] = hn::MulAdd(a, b0, sums[i][0]);
            sums[i][1] = hn::MulAdd(a, b1, sums[i][1]);
            sums[i][2] = hn::MulAdd(a, b2, sums[i][2]);
        }
    }
    Tile tile;
#pragma GCC unroll 4
    for (int i = 0; i < tile_left; ++i)
#pragma GCC unroll 3
        for (int j = 0; j < tile_right; ++j)
            tile.sum[i][j] = total(sums[i][j]);
    return tile;
}

void add_products(const double *left, const double *right, int stride, std::int32_t first, std::int32_t last,
                  double *out)
{
    for (std::int32_t from = 0; from < last; from += cached_right)
        for (std::int32_t a = std::max(first, from) / tile_left * tile_left; a < last; a += tile_left)
            for (std::int32_t b = from; b < std::min(from + cached_right, a + tile_left); b += tile_right) {
                const Tile tile = multiply(left + std::int64_t{a} * stride, right + std::int64_t{b} * stride, stride);
                for (std::int32_t i = std::max(first - a, 0); i < std::min(tile_left, last - a); ++i)
                    for (std::int32_t j = 0; j < std::min(tile_right, a + i - b + 1); ++j)
                        out[triangle_size(a + i) + b + j] += tile.sum[i][j];
            }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(ProductKernels, product_kernels, {turn<float>, turn<double>}, add_rows, add_products)
