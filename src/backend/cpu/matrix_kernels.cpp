#include "backend/cpu/matrix_kernels.hpp"

#include "backend/cpu/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matrix_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

// 24 sums where there are 32 registers of 64 bytes, 12 where there are 16.
constexpr int vectors = 3;
constexpr int rows = HWY_MAX_BYTES >= 64 ? 8 : 4;
constexpr int lanes = static_cast<int>(hn::MaxLanes(Tag()));
static_assert(rows <= most_tile_rows && lanes * vectors <= most_tile_columns);

void add_tile(const double *a, const double *b, std::int64_t depth, double *c, std::int64_t stride)
{
    const Tag tag;
    Vector sums[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; ++j)
            sums[i][j] = hn::Zero(tag);
    for (std::int64_t p = 0; p < depth; ++p, a += rows, b += vectors * lanes) {
        const Vector b0 = hn::LoadU(tag, b), b1 = hn::LoadU(tag, b + lanes), b2 = hn::LoadU(tag, b + 2 * lanes);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
            const Vector factor = hn::Set(tag, a[i]);
            sums[i][0] = hn::MulAdd(factor, b0, sums[i][0]);
            sums[i][1] = hn::MulAdd(factor, b1, sums[i][1]);
            sums[i][2] = hn::MulAdd(factor, b2, sums[i][2]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; ++j) {
            double *const to = c + i * stride + j * lanes;
            hn::StoreU(hn::Add(hn::LoadU(tag, to), sums[i][j]), tag, to);
        }
}

void symmetric_rows(const double *from, std::int64_t stride, std::int64_t n, const double *x, const double *factors,
                    double *y, double *products)
{
    const Tag tag;
    const double *const r0 = from, *const r1 = from + stride, *const r2 = from + 2 * stride,
                        *const r3 = from + 3 * stride;
    const Vector f0 = hn::Set(tag, factors[0]), f1 = hn::Set(tag, factors[1]), f2 = hn::Set(tag, factors[2]),
                 f3 = hn::Set(tag, factors[3]);
    Vector s0 = hn::Zero(tag), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
        const Vector v0 = hn::LoadU(tag, r0 + j), v1 = hn::LoadU(tag, r1 + j), v2 = hn::LoadU(tag, r2 + j),
                     v3 = hn::LoadU(tag, r3 + j), by = hn::LoadU(tag, x + j);
        s0 = hn::MulAdd(v0, by, s0);
        s1 = hn::MulAdd(v1, by, s1);
        s2 = hn::MulAdd(v2, by, s2);
        s3 = hn::MulAdd(v3, by, s3);
        const Vector first = hn::MulAdd(f1, v1, hn::MulAdd(f0, v0, hn::LoadU(tag, y + j)));
        hn::StoreU(hn::Add(first, hn::MulAdd(f3, v3, hn::Mul(f2, v2))), tag, y + j);
    }
    const Vector sums[4] = {s0, s1, s2, s3};
    const double *const row[4] = {r0, r1, r2, r3};
    for (int i = 0; i < 4; ++i) {
        products[i] = hn::GetLane(hn::SumOfLanes(tag, sums[i]));
        for (std::int64_t k = j; k < n; ++k)
            products[i] += row[i][k] * x[k];
    }
    for (; j < n; ++j)
        y[j] += factors[0] * r0[j] + factors[1] * r1[j] + factors[2] * r2[j] + factors[3] * r3[j];
}

const MatrixKernels *matrix_table()
{
    static const MatrixKernels table = {rows, vectors * lanes, add_tile, symmetric_rows};
    return &table;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/dispatch.hpp"

namespace pgkm::cpu {
HWY_EXPORT(matrix_table);

const MatrixKernels &matrix_kernels(InstructionSet set)
{
    return *PGKM_DISPATCH(matrix_table, set);
}

} // namespace pgkm::cpu
#endif
