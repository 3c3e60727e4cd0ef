#include "cpu/product_kernels.hpp"

#include <algorithm>

#include "cpu/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/product_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

// Features a of a tile, and features b: 12 sums, 3 loads and 1 factor fill 16 registers.
inline constexpr int tile_left = 4;
inline constexpr int tile_right = 3;
// Features b that stay in the second-level cache while all a pass by.
inline constexpr std::int32_t chunk = 48;

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

HWY_INLINE double total(Vector v)
{
    return hn::GetLane(hn::SumOfLanes(Tag(), v));
}

void add_rows(const double *block, int stride, std::int32_t d, double *sums)
{
    const Tag tag;
    const int lanes = static_cast<int>(hn::Lanes(tag));
    for (std::int32_t f = 0; f < d; ++f) {
        Vector sum = hn::Zero(tag);
        for (int r = 0; r < stride; r += lanes)
            sum = hn::Add(sum, hn::LoadU(tag, block + std::int64_t{f} * stride + r));
        sums[f] += total(sum);
    }
}

// The 12 sums of products of one tile, the vectors not yet added up.
struct Tile {
    double sum[tile_left][tile_right];
};

HWY_INLINE Tile multiply(const double *left, const double *right, int stride)
{
    const Tag tag;
    const int lanes = static_cast<int>(hn::Lanes(tag));
    Vector s00 = hn::Zero(tag), s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00;
    Vector s20 = s00, s21 = s00, s22 = s00, s30 = s00, s31 = s00, s32 = s00;
    for (int r = 0; r < stride; r += lanes) {
        const Vector b0 = hn::LoadU(tag, right + r);
        const Vector b1 = hn::LoadU(tag, right + stride + r);
        const Vector b2 = hn::LoadU(tag, right + 2 * stride + r);
        Vector a = hn::LoadU(tag, left + r);
        s00 = hn::MulAdd(a, b0, s00);
        s01 = hn::MulAdd(a, b1, s01);
        s02 = hn::MulAdd(a, b2, s02);
        a = hn::LoadU(tag, left + stride + r);
        s10 = hn::MulAdd(a, b0, s10);
        s11 = hn::MulAdd(a, b1, s11);
        s12 = hn::MulAdd(a, b2, s12);
        a = hn::LoadU(tag, left + 2 * stride + r);
        s20 = hn::MulAdd(a, b0, s20);
        s21 = hn::MulAdd(a, b1, s21);
        s22 = hn::MulAdd(a, b2, s22);
        a = hn::LoadU(tag, left + 3 * stride + r);
        s30 = hn::MulAdd(a, b0, s30);
        s31 = hn::MulAdd(a, b1, s31);
        s32 = hn::MulAdd(a, b2, s32);
    }
    return {{{total(s00), total(s01), total(s02)},
             {total(s10), total(s11), total(s12)},
             {total(s20), total(s21), total(s22)},
             {total(s30), total(s31), total(s32)}}};
}

void add_products(const double *left, const double *right, int stride, std::int32_t first, std::int32_t last,
                  double *out)
{
    for (std::int32_t from = 0; from < last; from += chunk)
        for (std::int32_t a = std::max(first, from) / tile_left * tile_left; a < last; a += tile_left)
            for (std::int32_t b = from; b < std::min(from + chunk, a + tile_left); b += tile_right) {
                const Tile tile = multiply(left + std::int64_t{a} * stride, right + std::int64_t{b} * stride, stride);
                for (std::int32_t i = std::max(first - a, 0); i < std::min(tile_left, last - a); ++i)
                    for (std::int32_t j = 0; j < std::min(tile_right, a + i - b + 1); ++j)
                        out[triangle(a + i) + b + j] += tile.sum[i][j];
            }
}

const ProductKernels *product_table()
{
    static const ProductKernels table = {turn<float>, turn<double>, add_rows, add_products};
    return &table;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/dispatch.hpp"

namespace pgkm::cpu {
HWY_EXPORT(product_table);

const ProductKernels &product_kernels(InstructionSet set)
{
    return *PGKM_DISPATCH(product_table, set);
}

} // namespace pgkm::cpu
#endif
