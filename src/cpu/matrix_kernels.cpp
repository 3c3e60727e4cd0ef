#include "cpu/matrix_kernels.hpp"

#include "cpu/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix_kernels.cpp"
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

const MatrixKernels *matrix_table()
{
    static const MatrixKernels table = {rows, vectors * lanes, add_tile};
    return &table;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "cpu/dispatch.hpp"

namespace pgkm::cpu {
HWY_EXPORT(matrix_table);

const MatrixKernels &matrix_kernels(InstructionSet set)
{
    return *PGKM_DISPATCH(matrix_table, set);
}

} // namespace pgkm::cpu
#endif
