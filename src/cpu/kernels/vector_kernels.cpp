// vector_kernels.cpp - dot products and sums of float64 vectors.
#include "cpu/kernels/vector_kernels.hpp"

#define HWY_TARGET_INCLUDE "cpu/kernels/vector_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
double dot(const double *x, const double *y, std::int64_t n)
{
    Vector sums[4] = {hn::Zero(tag), hn::Zero(tag), hn::Zero(tag), hn::Zero(tag)};
    std::int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes)
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part)
            sums[part] =
                hn::MulAdd(hn::LoadU(tag, x + i + part * lanes), hn::LoadU(tag, y + i + part * lanes), sums[part]);
    const Vector sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    double total = hn::GetLane(hn::SumOfLanes(tag, sum));
    for (; i < n; ++i)
        total += x[i] * y[i];
    return total;
}

void add(double *y, double a, const double *x, std::int64_t n)
{
    const Vector factor = hn::Set(tag, a);
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(hn::MulAdd(factor, hn::LoadU(tag, x + i), hn::LoadU(tag, y + i)), tag, y + i);
    for (; i < n; ++i)
        y[i] += a * x[i];
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(VectorKernels, vector_kernels, dot, add)
