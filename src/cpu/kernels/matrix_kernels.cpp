// matrix_kernels.cpp - a tile of a float64 matrix product, its sums in registers.
#include "cpu/kernels/matrix_kernels.hpp"

#define HWY_TARGET_INCLUDE "cpu/kernels/matrix_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// 24 sums where there are 32 registers of 64 bytes, 12 where there are 16.
constexpr int vectors = 3;
constexpr int rows = HWY_MAX_BYTES >= 64 ? 8 : 4;
static_assert(rows <= most_tile_rows && lanes * vectors <= most_tile_columns);

void add_tile(const double *a, const double *b, std::int64_t depth, double *c, std::int64_t stride)
{
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

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(MatrixKernels, matrix_kernels, rows, vectors *lanes, add_tile)
