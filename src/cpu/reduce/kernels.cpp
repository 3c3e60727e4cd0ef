// kernels.cpp (reduce) - operations on columns, lanes over rows.
//
// A sum block keeps a tile of tile_vectors vectors of rows and four sums in registers, as exact_kernels.cpp does.
#include "cpu/reduce/kernels.hpp"

#include <cmath>
#include <limits>

#define HWY_TARGET_INCLUDE "cpu/reduce/kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

HWY_INLINE Vector load(const double *from)
{
    return hn::Load(tag, from);
}
HWY_INLINE Vector zero()
{
    return hn::Zero(tag);
}

// 0 of either sign, or NaN where x is no number.
HWY_INLINE Vector poison_of(Vector x)
{
    return hn::Mul(x, zero());
}
HWY_INLINE Vector keep_poison(Vector x, Vector result)
{
    return hn::IfThenElse(hn::Eq(poison_of(x), zero()), result, hn::Set(tag, std::numeric_limits<double>::quiet_NaN()));
}
template <typename Mask>
HWY_INLINE Vector truth(Mask mask)
{
    return hn::IfThenElseZero(mask, hn::Set(tag, 1.0));
}
HWY_INLINE auto is_true(Vector x)
{
    return hn::Ne(x, zero());
}

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
    return load(s);
#endif
}

// Highway's own for one lane lose the sign of 0, and round 0.5 - 2^-54 up.
#if HWY_TARGET == HWY_SCALAR
#define PGKM_ROUNDED(VECTOR, FUNCTION, A) hn::Set(tag, std::FUNCTION(hn::GetLane(A)))
#else
#define PGKM_ROUNDED(VECTOR, FUNCTION, A) hn::VECTOR(A)
#endif

#define PGKM_OPERATION(NAME, ...)                                                                                     \
    struct NAME {                                                                                                     \
        static HWY_INLINE Vector of(Vector a, [[maybe_unused]] Vector b = zero(), [[maybe_unused]] Vector c = zero()) \
        {                                                                                                             \
            return __VA_ARGS__;                                                                                       \
        }                                                                                                             \
    };
#define PGKM_TRUTH(NAME, ...) PGKM_OPERATION(NAME, hn::Add(truth(__VA_ARGS__), hn::Add(poison_of(a), poison_of(b))))
PGKM_OPERATION(Negate, hn::Neg(a))
PGKM_OPERATION(Not, hn::Add(truth(hn::Eq(a, zero())), poison_of(a)))
PGKM_OPERATION(Abs, hn::Abs(a))
PGKM_OPERATION(Sqrt, hn::Sqrt(a))
PGKM_OPERATION(Floor, PGKM_ROUNDED(Floor, floor, a))
PGKM_OPERATION(Ceil, PGKM_ROUNDED(Ceil, ceil, a))
PGKM_OPERATION(Round, PGKM_ROUNDED(Round, rint, a))
PGKM_OPERATION(Trunc, PGKM_ROUNDED(Trunc, trunc, a))
PGKM_OPERATION(Sign, hn::Add(hn::Sub(truth(hn::Gt(a, zero())), truth(hn::Lt(a, zero()))), poison_of(a)))
PGKM_OPERATION(Add, hn::Add(a, b))
PGKM_OPERATION(Subtract, hn::Sub(a, b))
PGKM_OPERATION(Multiply, hn::Mul(a, b))
PGKM_OPERATION(Divide, keep_poison(b, hn::Div(a, b)))
PGKM_OPERATION(Least, keep_poison(a, keep_poison(b, hn::IfThenElse(hn::Lt(b, a), b, a))))
PGKM_OPERATION(Greatest, keep_poison(a, keep_poison(b, hn::IfThenElse(hn::Gt(b, a), b, a))))
PGKM_TRUTH(Equal, hn::Eq(a, b))
PGKM_TRUTH(NotEqual, hn::Ne(a, b))
PGKM_TRUTH(Less, hn::Lt(a, b))
PGKM_TRUTH(LessEqual, hn::Le(a, b))
PGKM_TRUTH(And, hn::And(is_true(a), is_true(b)))
PGKM_TRUTH(Or, hn::Or(is_true(a), is_true(b)))
PGKM_OPERATION(Case, keep_poison(a, hn::IfThenElse(is_true(a), b, c)))
// Steps of a loop: c is what came before. What is no number there stays none.
PGKM_OPERATION(AddProduct, fused(a, b, c))
PGKM_OPERATION(AddValue, hn::Add(c, a))
PGKM_OPERATION(MultiplyValue, hn::Mul(c, a))
PGKM_OPERATION(TakeLeast, keep_poison(a, hn::IfThenElse(hn::Lt(a, c), a, c)))
PGKM_OPERATION(TakeGreatest, keep_poison(a, hn::IfThenElse(hn::Gt(a, c), a, c)))
PGKM_OPERATION(CountTrue, hn::Add(c, NotEqual::of(a, zero())))
#undef PGKM_TRUTH
#undef PGKM_OPERATION
#undef PGKM_ROUNDED

// The vectors of an operand.
class Vectors {
  public:
    explicit HWY_INLINE Vectors(Operand of) : from_(of.at), mask_(of.column ? -1 : 0)
    {
        hn::Store(hn::Set(tag, *of.at), tag, same_);
        from_ = of.column ? of.at : same_;
    }
    HWY_INLINE Vector at(int row) const { return load(from_ + (row & mask_)); }

  private:
    HWY_ALIGN_MAX double same_[lanes];
    const double *from_;
    int mask_;
};

template <typename Operation>
void operation(double *to, Operand a, Operand b, Operand c, int n)
{
    const Vectors x(a), y(b), z(c);
    for (int i = 0; i < n; i += lanes)
        hn::Store(Operation::of(x.at(i), y.at(i), z.at(i)), tag, to + i);
}

template <typename Operation>
void step(double *to, double *, Operand a, Operand b, double, int n)
{
    const Vectors x(a), y(b);
    for (int i = 0; i < n; i += lanes)
        hn::Store(Operation::of(x.at(i), y.at(i), load(to + i)), tag, to + i);
}

template <bool greatest>
void take_place(double *HWY_RESTRICT to, double *HWY_RESTRICT best, Operand a, Operand, double index, int n)
{
    const Vector here = hn::Set(tag, index);
    const Vectors values(a);
    for (int i = 0; i < n; i += lanes) {
        const Vector x = values.at(i), old = load(best + i);
        const auto better = greatest ? hn::Gt(x, old) : hn::Lt(x, old);
        hn::Store(hn::Add(hn::IfThenElse(better, x, old), poison_of(x)), tag, best + i);
        hn::Store(hn::IfThenElse(better, here, load(to + i)), tag, to + i);
    }
}

void fill(double *to, double value, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(hn::Set(tag, value), tag, to + i);
}

void mask(double *to, const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(hn::IfThenElseZero(is_true(load(b + i)), load(a + i)), tag, to + i);
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
                row[v] = load(x + i * stride + r + v * lanes);
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

// ---- into cells ----

bool is_finite(const double *a, int n)
{
    Vector poison = zero();
    for (int i = 0; i < n; i += lanes)
        poison = hn::Add(poison, poison_of(load(a + i)));
    return total(poison) == 0.0;
}

double largest(const double *a, int n)
{
    Vector most = zero(), poison = zero();
    for (int i = 0; i < n; i += lanes) {
        const Vector x = load(a + i);
        most = hn::Max(most, hn::Abs(x));
        poison = hn::Add(poison, poison_of(x));
    }
    return hn::GetLane(hn::MaxOfLanes(tag, most)) + total(poison);
}

HWY_INLINE Vector quantised(Vector x, double scale)
{
    return Round::of(hn::Mul(x, hn::Set(tag, scale)));
}

template <typename Values>
HWY_INLINE void sum_up(const Values &values, int n, double *sums)
{
    constexpr int parts = parts_of_total / lanes;
    Vector sum[parts];
    for (int p = 0; p < parts; ++p)
        sum[p] = zero();
    for (int i = 0; i < n; i += parts_of_total)
        for (int p = 0; p < parts; ++p)
            sum[p] = hn::Add(sum[p], values(i + p * lanes));
    for (int p = 0; p < parts; ++p)
        hn::StoreU(sum[p], tag, sums + p * lanes);
}

void total_of_rows(const double *a, const double *b, double scale, int n, double *sums)
{
    if (scale != 0.0)
        sum_up([a, scale](int i) HWY_ATTR { return quantised(load(a + i), scale); }, n, sums);
    else if (b == nullptr)
        sum_up([a](int i) HWY_ATTR { return load(a + i); }, n, sums);
    else
        sum_up([a, b](int i) HWY_ATTR { return hn::Mul(load(a + i), load(b + i)); }, n, sums);
}

void quantise(double *to, const double *a, double scale, int n)
{
    for (int i = 0; i < n; i += lanes)
        hn::Store(quantised(load(a + i), scale), tag, to + i);
}

bool place(double *to, double *live, const double *filter, const double *cell, double cells, int n)
{
    const Vector end = hn::Set(tag, cells), one = hn::Set(tag, 1.0), none = hn::Set(tag, -1.0);
    Vector bad = zero();
    for (int i = 0; i < n; i += lanes) {
        const Vector in = filter == nullptr ? one : load(filter + i);
        const Vector at = cell == nullptr ? zero() : load(cell + i);
        const auto inside = hn::And(hn::And(hn::Ge(at, zero()), hn::Lt(at, end)), hn::Eq(at, Floor::of(at)));
        const auto left_out = hn::Eq(in, zero());
        const auto good = hn::AndNot(left_out, inside);
        hn::Store(hn::IfThenElse(good, at, none), tag, to + i);
        hn::Store(truth(good), tag, live + i);
        bad = hn::Add(bad, hn::Add(poison_of(in), hn::IfThenZeroElse(hn::Or(left_out, inside), one)));
    }
    return total(bad) == 0.0;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// clang-format off
PGKM_KERNELS(ReduceKernels, reduce_kernels,
             {operation<Negate>, operation<Not>, operation<Abs>, operation<Sqrt>, nullptr, nullptr, operation<Floor>,
              operation<Ceil>, operation<Round>, operation<Trunc>, operation<Sign>, nullptr, nullptr, nullptr, nullptr,
              nullptr, nullptr, nullptr, operation<Add>, operation<Subtract>, operation<Multiply>, operation<Divide>,
              nullptr, nullptr, nullptr, operation<Least>, operation<Greatest>, operation<Equal>, operation<NotEqual>,
              operation<Less>, operation<LessEqual>, operation<And>, operation<Or>, operation<Case>},
             {step<AddValue>, step<MultiplyValue>, step<TakeLeast>, step<TakeGreatest>, take_place<false>,
              take_place<true>, step<CountTrue>},
             step<AddProduct>, fill, {sum_block<false>, sum_block<true>},
             is_finite, largest, total_of_rows, quantise, mask, place)
// clang-format on
