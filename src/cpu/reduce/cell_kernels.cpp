// cell_kernels.cpp - columns on their way into cells: sums of rows, integers, places.
#include "cpu/reduce/cell_kernels.hpp"

#include <cmath>

#define HWY_TARGET_INCLUDE "cpu/reduce/cell_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/reduce/columns-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

bool is_finite(const double *a, const double *live, int rows)
{
    Vector poison = zero();
    int i = 0;
    for (; i + lanes <= rows; i += lanes) {
        Vector x = hn::Load(tag, a + i);
        if (live != nullptr)
            x = hn::IfThenElseZero(hn::Ne(hn::Load(tag, live + i), zero()), x);
        poison = hn::Add(poison, poison_of(x));
    }
    bool finite = total(poison) == 0.0;
    for (; i < rows; ++i)
        finite = finite && (std::isfinite(a[i]) || (live != nullptr && live[i] == 0.0));
    return finite;
}

// A row of `live` counts, or each where there is none.
struct Every {
    static HWY_INLINE Vector of(Vector x, int) { return x; }
    static double of(double x, int) { return x; }
};
struct Live {
    const double *live;
    HWY_INLINE Vector of(Vector x, int i) const
    {
        return hn::IfThenElseZero(hn::Ne(hn::Load(tag, live + i), zero()), x);
    }
    double of(double x, int i) const { return live[i] != 0.0 ? x : 0.0; }
};

struct Plain {
    const double *a;
    HWY_INLINE Vector at(int i) const { return hn::Load(tag, a + i); }
    double one(int i) const { return a[i]; }
};
struct Products {
    const double *a, *b;
    HWY_INLINE Vector at(int i) const { return hn::Mul(hn::Load(tag, a + i), hn::Load(tag, b + i)); }
    double one(int i) const { return a[i] * b[i]; }
};
struct Quantised {
    const double *a;
    double scale;
    HWY_INLINE Vector at(int i) const { return ToRound::of(hn::Mul(hn::Load(tag, a + i), hn::Set(tag, scale))); }
    double one(int i) const { return std::rint(a[i] * scale); }
};

// Sums of the rows of each remainder by 16, on every instruction set.
constexpr int parts_of_total = 16;

template <typename Values, typename Rows>
HWY_INLINE void sum_parts(const Values &values, const Rows &taken, int rows, double *sums)
{
    constexpr int parts = parts_of_total / lanes;
    Vector sum[parts];
    for (int p = 0; p < parts; ++p)
        sum[p] = zero();
    int i = 0;
    for (; i + parts_of_total <= rows; i += parts_of_total)
        for (int p = 0; p < parts; ++p)
            sum[p] = hn::Add(sum[p], taken.of(values.at(i + p * lanes), i + p * lanes));
    for (int p = 0; p < parts; ++p)
        hn::Store(sum[p], tag, sums + p * lanes);
    for (int p = 0; i + p < rows; ++p)
        sums[p] += taken.of(values.one(i + p), i + p);
}

template <typename Values>
HWY_INLINE void sum_rows(const Values &values, const double *live, int rows, double *sums)
{
    if (live == nullptr)
        sum_parts(values, Every(), rows, sums);
    else
        sum_parts(values, Live{live}, rows, sums);
}

template <typename Values>
HWY_INLINE double total_of(const Values &values, const double *live, int rows)
{
    HWY_ALIGN_MAX double sums[parts_of_total];
    sum_rows(values, live, rows, sums);
    for (int half = parts_of_total / 2; half > 0; half /= 2)
        for (int p = 0; p < half; ++p)
            sums[p] += sums[p + half];
    return sums[0];
}

double total_of_rows(const double *a, const double *live, int rows)
{
    return total_of(Plain{a}, live, rows);
}

double total_of_products(const double *a, const double *b, const double *live, int rows)
{
    return total_of(Products{a, b}, live, rows);
}

void quantise(double *to, const double *a, double scale, int n)
{
    const Quantised values = {a, scale};
    for (int i = 0; i < n; i += lanes)
        hn::Store(values.at(i), tag, to + i);
}

std::int64_t total_quantised(const double *a, double scale, const double *live, int rows)
{
    static_assert(most_quantised / parts_of_total <= 1 << 7); // of 2^45: below 2^53
    HWY_ALIGN_MAX double sums[parts_of_total];
    sum_rows(Quantised{a, scale}, live, rows, sums);
    std::int64_t total = 0;
    for (const double sum : sums)
        total += static_cast<std::int64_t>(sum);
    return total;
}

bool place(double *to, double *live, const double *filter, const double *cell, double cells, int rows)
{
    const Vector end = hn::Set(tag, cells), one = hn::Set(tag, 1.0), none = hn::Set(tag, -1.0);
    Vector bad = zero();
    for (int i = 0; i < rows; i += lanes) { // behind the last row columns hold that row again
        const Vector in = filter == nullptr ? one : hn::Load(tag, filter + i);
        const Vector at = cell == nullptr ? zero() : hn::Load(tag, cell + i);
        const auto inside = hn::And(hn::And(hn::Ge(at, zero()), hn::Lt(at, end)), hn::Eq(at, ToFloor::of(at)));
        const auto left_out = hn::Eq(in, zero());
        const auto good = hn::AndNot(left_out, inside);
        hn::Store(hn::IfThenElse(good, at, none), tag, to + i);
        hn::Store(truth(good), tag, live + i);
        bad = hn::Add(bad, hn::Add(poison_of(in), hn::IfThenZeroElse(hn::Or(left_out, inside), one)));
    }
    return total(bad) == 0.0;
}

double largest(const double *a, const double *live, int rows)
{
    Vector most = zero(), poison = zero();
    int i = 0;
    for (; i + lanes <= rows; i += lanes) {
        Vector x = hn::Abs(hn::Load(tag, a + i));
        if (live != nullptr)
            x = hn::IfThenElseZero(hn::Ne(hn::Load(tag, live + i), zero()), x);
        most = hn::Max(most, x);
        poison = hn::Add(poison, poison_of(x));
    }
    double found = hn::GetLane(hn::MaxOfLanes(tag, most)), rest = total(poison);
    for (; i < rows; ++i)
        if (live == nullptr || live[i] != 0.0) {
            found = std::fmax(found, std::fabs(a[i]));
            rest += a[i] * 0.0;
        }
    return found + rest;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(CellKernels, cell_kernels, is_finite, total_of_rows, total_of_products, largest, quantise, total_quantised,
             place)
