// mixture_kernels.cpp - densities, responsibilities and weighted sums of a block of rows that lies feature by feature.
#include "cpu/mixture/mixture_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#define HWY_TARGET_INCLUDE "cpu/mixture/mixture_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
void centre(const double *block, int stride, std::int32_t d, const double *mean, double *out)
{
    for (std::int32_t f = 0; f < d; ++f) {
        const Vector shift = hn::Set(tag, mean[f]);
        const double *const x = block + std::int64_t{f} * stride;
        double *const y = out + std::int64_t{f} * stride;
        for (int r = 0; r < stride; r += lanes)
            hn::StoreU(hn::Sub(hn::LoadU(tag, x + r), shift), tag, y + r);
    }
}

// Four rows of W times `Vectors` vectors of rows: the sums after all features.
template <int Vectors>
struct Tile {
    Vector sum[4][Vectors];
};

// W's four rows from c on, packed; columns: those that are not zero.
template <int Vectors>
HWY_INLINE void multiply(const double *packed, std::int64_t columns, const double *x, int stride, Tile<Vectors> &tile)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v)
            tile.sum[i][v] = hn::Zero(tag);
    for (std::int64_t f = 0; f < columns; ++f) {
        Vector row[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v)
            row[v] = hn::LoadU(tag, x + f * stride + v * lanes);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const Vector factor = hn::Set(tag, packed[f * 4 + i]);
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v)
                tile.sum[i][v] = hn::MulAdd(factor, row[v], tile.sum[i][v]);
        }
    }
}

// Calls body(r, tile width constant) for tiles of three vectors of rows, then of one.
template <typename Body>
HWY_INLINE void for_tiles(int rows, Body &&body)
{
    int r = 0;
    for (; r + 3 * lanes <= rows; r += 3 * lanes)
        body(r, std::integral_constant<int, 3>());
    for (; r < rows; r += lanes)
        body(r, std::integral_constant<int, 1>());
}

void transform(const double *block, int rows, int stride, std::int32_t d, const double *packed, double *out)
{
    for_tiles(rows, [&](int r, auto width) {
        constexpr int vectors = decltype(width)::value;
        for (std::int32_t c = 0; c < d; c += 4) {
            Tile<vectors> tile;
            multiply(packed + c * packed_columns(d), std::min(c + 4, d), block + r, stride, tile);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v)
                    hn::StoreU(tile.sum[i][v], tag, out + std::int64_t{c + i} * stride + r + v * lanes);
        }
    });
}

void transformed_squares(const double *block, int rows, int stride, std::int32_t d, const double *packed,
                         double *squares)
{
    for_tiles(rows, [&](int r, auto width) {
        constexpr int vectors = decltype(width)::value;
        Vector square[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            square[v] = hn::Zero(tag);
        for (std::int32_t c = 0; c < d; c += 4) {
            Tile<vectors> tile;
            multiply(packed + c * packed_columns(d), std::min(c + 4, d), block + r, stride, tile);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v)
                    square[v] = hn::MulAdd(tile.sum[i][v], tile.sum[i][v], square[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            hn::StoreU(square[v], tag, squares + r + v * lanes);
    });
}

void scaled_squares(const double *block, int stride, std::int32_t d, const double *mean, const double *factor,
                    double *squares)
{
    for_tiles(stride, [&](int r, auto width) {
        constexpr int vectors = decltype(width)::value;
        Vector square[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            square[v] = hn::Zero(tag);
        for (std::int32_t f = 0; f < d; ++f) {
            const Vector shift = hn::Set(tag, mean[f]), scale = hn::Set(tag, factor[f]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) {
                const Vector x = hn::LoadU(tag, block + std::int64_t{f} * stride + r + v * lanes);
                const Vector y = hn::Mul(hn::Sub(x, shift), scale);
                square[v] = hn::MulAdd(y, y, square[v]);
            }
        }
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            hn::StoreU(square[v], tag, squares + r + v * lanes);
    });
}

// The logarithm of a component's density, weighted: constant - square / 2.
HWY_INLINE Vector log_density(const double *square, double constant)
{
    return hn::NegMulAdd(hn::Set(tag, 0.5), hn::LoadU(tag, square), hn::Set(tag, constant));
}

BlockDensity normalise(double *squares, int rows, int stride, std::int32_t k, const double *constants,
                       const double *weights, std::int32_t *labels)
{
    Vector likelihood = hn::Zero(tag);
    bool finite = true;
    for (int r = 0; r < stride; r += lanes) {
        Vector largest = log_density(squares + r, constants[0]);
        Vector label = hn::Zero(tag);
        for (std::int32_t j = 1; j < k; ++j) {
            const Vector density = log_density(squares + std::int64_t{j} * stride + r, constants[j]);
            label = hn::IfThenElse(hn::Gt(density, largest), hn::Set(tag, static_cast<double>(j)), label);
            largest = hn::Max(largest, density);
        }
        Vector sum = hn::Zero(tag);
        for (std::int32_t j = 0; j < k; ++j) {
            double *const at = squares + std::int64_t{j} * stride + r;
            const Vector share = hn::Exp(tag, hn::Sub(log_density(at, constants[j]), largest));
            hn::StoreU(share, tag, at);
            sum = hn::Add(sum, share);
        }
        const int used = std::clamp(rows - r, 0, lanes);
        const auto within = hn::FirstN(tag, static_cast<std::size_t>(used));
        const Vector weight = weights == nullptr ? hn::Set(tag, 1.0) : hn::LoadU(tag, weights + r);
        const Vector inverse = hn::IfThenElseZero(within, hn::Div(weight, sum));
        for (std::int32_t j = 0; j < k; ++j) {
            double *const at = squares + std::int64_t{j} * stride + r;
            hn::StoreU(hn::Mul(hn::LoadU(tag, at), inverse), tag, at);
        }
        const Vector density = hn::IfThenElseZero(within, hn::Add(largest, hn::Log(tag, sum)));
        likelihood = hn::Add(likelihood, hn::Mul(weight, density));
        // Infinite squares, or all of them: the comparison is false for NaN too.
        finite = finite && hn::AllTrue(tag, hn::Le(hn::Abs(density), hn::Set(tag, std::numeric_limits<double>::max())));
        if (labels != nullptr) {
            HWY_ALIGN_MAX double found[HWY_MAX_BYTES / sizeof(double)];
            hn::StoreU(label, tag, found);
            for (int i = 0; i < used; ++i)
                labels[r + i] = static_cast<std::int32_t>(found[i]);
        }
    }
    return {total(likelihood), finite};
}

double weigh(const double *block, int stride, std::int32_t d, const double *weight, double *out)
{
    Vector mass = hn::Zero(tag);
    for (int r = 0; r < stride; r += lanes)
        mass = hn::Add(mass, hn::LoadU(tag, weight + r));
    for (std::int32_t f = 0; f < d; ++f) {
        const std::int64_t row = std::int64_t{f} * stride;
        for (int r = 0; r < stride; r += lanes)
            hn::StoreU(hn::Mul(hn::LoadU(tag, block + row + r), hn::LoadU(tag, weight + r)), tag, out + row + r);
    }
    return total(mass);
}

// Two chains of sums, so that one does not wait for the other.
template <bool Squares>
HWY_INLINE void sum_feature(const double *x, int stride, const double *weight, double mean, double *first,
                            double *second)
{
    const Vector shift = hn::Set(tag, mean);
    Vector sum[2] = {hn::Zero(tag), hn::Zero(tag)}, square[2] = {sum[0], sum[0]};
    int r = 0;
    const auto add = [&](int chain) {
        const Vector difference = hn::Sub(hn::LoadU(tag, x + r), shift);
        const Vector product = hn::Mul(hn::LoadU(tag, weight + r), difference);
        sum[chain] = hn::Add(sum[chain], product);
        if (Squares)
            square[chain] = hn::MulAdd(product, difference, square[chain]);
        r += lanes;
    };
    while (r + 2 * lanes <= stride) {
        add(0);
        add(1);
    }
    while (r < stride)
        add(0);
    *first += total(hn::Add(sum[0], sum[1]));
    if (Squares)
        *second += total(hn::Add(square[0], square[1]));
}

double weighted_sums(const double *block, int stride, std::int32_t d, const double *weight, const double *mean,
                     double *first, double *second)
{
    Vector mass = hn::Zero(tag);
    for (int r = 0; r < stride; r += lanes)
        mass = hn::Add(mass, hn::LoadU(tag, weight + r));
    for (std::int32_t f = 0; f < d; ++f) {
        const double *const x = block + std::int64_t{f} * stride;
        if (second != nullptr)
            sum_feature<true>(x, stride, weight, mean[f], first + f, second + f);
        else
            sum_feature<false>(x, stride, weight, mean[f], first + f, nullptr);
    }
    return total(mass);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(MixtureKernels, mixture_kernels, centre, transform, transformed_squares, scaled_squares, normalise, weigh,
             weighted_sums)
