// batch_kernels.cpp - operations on columns, lanes over rows.
//
// sum_block keeps a tile of tile_vectors vectors of rows and four sums in registers, as direct_kernels.cpp does.
#include "cpu/reduce/batch_kernels.hpp"

#include <cmath>

#define HWY_TARGET_INCLUDE "cpu/reduce/batch_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/reduce/columns-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

// a * b + c, rounded once on every instruction set.
HWY_INLINE Vector fused(Vector a, Vector b, Vector c)
{
#if HWY_NATIVE_FMA
    return hn::MulAdd(a, b, c);
#else
    HWY_ALIGN_MAX double x[lanes], y[lanes], s[lanes];
    hn::Store(a, tag, x);
    hn::Store(b, tag, y);
    hn::Store(c, tag, s);
    for (int i = 0; i < lanes; ++i)
        s[i] = std::fma(x[i], y[i], s[i]);
    return hn::Load(tag, s);
#endif
}

struct Negate {
    static HWY_INLINE Vector of(Vector a) { return hn::Neg(a); }
};
struct Not {
    static HWY_INLINE Vector of(Vector a) { return hn::Add(truth(hn::Eq(a, zero())), poison_of(a)); }
};
struct Abs {
    static HWY_INLINE Vector of(Vector a) { return hn::Abs(a); }
};
struct Sqrt {
    static HWY_INLINE Vector of(Vector a) { return hn::Sqrt(a); }
};
struct Sign {
    static HWY_INLINE Vector of(Vector a)
    {
        return hn::Add(hn::Sub(truth(hn::Gt(a, zero())), truth(hn::Lt(a, zero()))), poison_of(a));
    }
};

template <typename Operation>
void unary(double *HWY_RESTRICT to, const double *a, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(Operation::of(hn::Load(tag, a + i)), tag, to + i);
}

struct Plus {
    static HWY_INLINE Vector of(Vector a, Vector b) { return hn::Add(a, b); }
};
struct Minus {
    static HWY_INLINE Vector of(Vector a, Vector b) { return hn::Sub(a, b); }
};
struct Times {
    static HWY_INLINE Vector of(Vector a, Vector b) { return hn::Mul(a, b); }
};
struct Divide {
    static HWY_INLINE Vector of(Vector a, Vector b) { return keep_poison(b, hn::Div(a, b)); }
};
struct Least {
    static HWY_INLINE Vector of(Vector a, Vector b)
    {
        return keep_poison(a, keep_poison(b, hn::IfThenElse(hn::Lt(b, a), b, a)));
    }
};
struct Greatest {
    static HWY_INLINE Vector of(Vector a, Vector b)
    {
        return keep_poison(a, keep_poison(b, hn::IfThenElse(hn::Gt(b, a), b, a)));
    }
};
HWY_INLINE Vector with_poison(Vector truth, Vector a, Vector b)
{
    return hn::Add(truth, hn::Add(poison_of(a), poison_of(b)));
}
struct Equal {
    static HWY_INLINE Vector of(Vector a, Vector b) { return with_poison(truth(hn::Eq(a, b)), a, b); }
};
struct NotEqual {
    static HWY_INLINE Vector of(Vector a, Vector b) { return with_poison(truth(hn::Ne(a, b)), a, b); }
};
struct Less {
    static HWY_INLINE Vector of(Vector a, Vector b) { return with_poison(truth(hn::Lt(a, b)), a, b); }
};
struct LessEqual {
    static HWY_INLINE Vector of(Vector a, Vector b) { return with_poison(truth(hn::Le(a, b)), a, b); }
};
struct And {
    static HWY_INLINE Vector of(Vector a, Vector b)
    {
        return with_poison(truth(hn::And(hn::Ne(a, zero()), hn::Ne(b, zero()))), a, b);
    }
};
struct Or {
    static HWY_INLINE Vector of(Vector a, Vector b)
    {
        return with_poison(truth(hn::Or(hn::Ne(a, zero()), hn::Ne(b, zero()))), a, b);
    }
};

// to = Operation(to, a, b), where one of a and b may be one number.
template <typename Operation, Broadcast which>
HWY_INLINE void on_columns(double *to, const double *a, const double *b, int n)
{
    const Vector first = hn::Set(tag, *a), second = hn::Set(tag, *b);
    for (int i = 0; i < n; i += lanes)
        Operation::run(to + i, which == broadcast_first ? first : hn::Load(tag, a + i),
                       which == broadcast_second ? second : hn::Load(tag, b + i));
}

template <typename Operation>
struct Make {
    static HWY_INLINE void run(double *to, Vector a, Vector b) { hn::Store(Operation::of(a, b), tag, to); }
};
struct AddSquare {
    static HWY_INLINE void run(double *to, Vector a, Vector b)
    {
        hn::Store(add_square(hn::Sub(a, b), hn::Load(tag, to)), tag, to);
    }
};
struct AddProduct {
    static HWY_INLINE void run(double *to, Vector a, Vector b) { hn::Store(fused(a, b, hn::Load(tag, to)), tag, to); }
};

template <typename Operation, Broadcast which>
void columns(double *to, const double *a, const double *b, int n)
{
    on_columns<Operation, which>(to, a, b, n);
}

void choose(double *to, const double *condition, const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i += lanes) {
        const Vector c = hn::Load(tag, condition + i);
        const Vector kept = hn::IfThenElse(hn::Ne(c, zero()), hn::Load(tag, a + i), hn::Load(tag, b + i));
        hn::Store(keep_poison(c, kept), tag, to + i);
    }
}

void fill(double *to, double value, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(hn::Set(tag, value), tag, to + i);
}

void add_sum(double *to, const double *a, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(hn::Add(hn::Load(tag, to + i), hn::Load(tag, a + i)), tag, to + i);
}

void multiply_by(double *to, const double *a, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(hn::Mul(hn::Load(tag, to + i), hn::Load(tag, a + i)), tag, to + i);
}

void add_count(double *to, const double *a, int n)
{
    for (int i = 0; i < n; i += lanes) {
        const Vector x = hn::Load(tag, a + i);
        const Vector one = hn::Add(truth(hn::Ne(x, zero())), poison_of(x));
        hn::Store(hn::Add(hn::Load(tag, to + i), one), tag, to + i);
    }
}

template <bool is_least>
void extreme(double *HWY_RESTRICT best, double *HWY_RESTRICT place, double *HWY_RESTRICT poison, const double *a,
             double index, int n)
{
    const Vector at = hn::Set(tag, index);
    for (int i = 0; i < n; i += lanes) {
        const Vector x = hn::Load(tag, a + i), old = hn::Load(tag, best + i);
        const auto better = is_least ? hn::Lt(x, old) : hn::Gt(x, old);
        hn::Store(hn::IfThenElse(better, x, old), tag, best + i);
        hn::Store(hn::IfThenElse(better, at, hn::Load(tag, place + i)), tag, place + i);
        hn::Store(hn::Add(hn::Load(tag, poison + i), poison_of(x)), tag, poison + i);
    }
}

void add_poison(double *to, const double *poison, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(keep_poison(hn::Load(tag, poison + i), hn::Load(tag, to + i)), tag, to + i);
}

template <bool square>
void sum_block(const double *x, std::int64_t stride, const double *table, std::int64_t count, double *sums, int n)
{
    constexpr int vectors = tile_vectors;
    for (int r = 0; r < n; r += vectors * lanes) {
        Vector sum[sum_panel][vectors];
        HWY_UNROLL(4)
        for (int j = 0; j < sum_panel; ++j)
            HWY_UNROLL(4)
        for (int v = 0; v < vectors; ++v)
            sum[j][v] = zero();
        for (std::int64_t i = 0; i < count; ++i) {
            Vector row[vectors];
            HWY_UNROLL(4)
            for (int v = 0; v < vectors; ++v)
                row[v] = hn::Load(tag, x + i * stride + r + v * lanes);
            HWY_UNROLL(4)
            for (int j = 0; j < sum_panel; ++j) {
                const Vector u = hn::Set(tag, table[i * sum_panel + j]);
                HWY_UNROLL(4)
                for (int v = 0; v < vectors; ++v)
                    sum[j][v] = square ? add_square(hn::Sub(row[v], u), sum[j][v]) : fused(row[v], u, sum[j][v]);
            }
        }
        HWY_UNROLL(4)
        for (int j = 0; j < sum_panel; ++j)
            HWY_UNROLL(4)
        for (int v = 0; v < vectors; ++v)
            hn::Store(sum[j][v], tag, sums + j * stride + r + v * lanes);
    }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// clang-format off
#define PGKM_MODES(OPERATION) \
    {columns<OPERATION, broadcast_none>, columns<OPERATION, broadcast_first>, columns<OPERATION, broadcast_second>}

PGKM_KERNELS(BatchKernels, batch_kernels,
             {unary<Negate>, unary<Not>, unary<Abs>, unary<Sqrt>, unary<ToFloor>, unary<ToCeil>, unary<ToRound>,
              unary<ToTrunc>, unary<Sign>},
             {PGKM_MODES(Make<Plus>), PGKM_MODES(Make<Minus>), PGKM_MODES(Make<Times>), PGKM_MODES(Make<Divide>),
              PGKM_MODES(Make<Least>), PGKM_MODES(Make<Greatest>), PGKM_MODES(Make<Equal>),
              PGKM_MODES(Make<NotEqual>), PGKM_MODES(Make<Less>), PGKM_MODES(Make<LessEqual>), PGKM_MODES(Make<And>),
              PGKM_MODES(Make<Or>)},
             choose, fill, PGKM_MODES(AddSquare), add_sum, PGKM_MODES(AddProduct),
             multiply_by, add_count, extreme<true>, extreme<false>, add_poison, sum_block<false>, sum_block<true>)
// clang-format on
