// program.cpp (generate) - one walk over the expressions, front to back.
#include "backend/generate/program.hpp"

#include <algorithm>
#include <cmath>

#include "numeric/error.hpp"

namespace pgkm::generate {

Program::Program(const PgkmReduction &reduction) : source_(reduction), facts_(facts_of(reduction))
{
    constexpr std::int32_t most_expressions = 8192;
    if (reduction.n_expressions > most_expressions)
        throw Error(PGKM_UNSUPPORTED, "the reduction is too long for the GPU");
    for (std::int32_t e = 0; e < reduction.n_expressions; ++e)
        whole_.push_back(find_whole(e));
}

bool Program::is_whole_quotient(std::int32_t e) const
{
    const PgkmExpression &x = at(e);
    if ((x.operation != PGKM_FLOOR && x.operation != PGKM_TRUNC) || at(x.a[0]).operation != PGKM_DIVIDE)
        return false;
    const Whole &above = whole(at(x.a[0]).a[0]), &below = whole(at(x.a[0]).a[1]);
    return above.is && above.least >= 0 && below.is && below.least >= 1;
}

// In 32 bits. Where -0 could come out it is none, since 0 as an integer has no sign.
Program::Whole Program::find_whole(std::int32_t e) const
{
    constexpr std::int64_t most_whole = (std::int64_t{1} << 31) - 1;
    const PgkmExpression &x = at(e);
    const auto within = [](std::int64_t least, std::int64_t most) {
        return least >= -most_whole && most <= most_whole ? Whole{true, least, most} : Whole{};
    };
    const Whole none, &a = x.a[0] < 0 ? none : whole(x.a[0]), &b = x.a[1] < 0 ? none : whole(x.a[1]);
    const bool both = a.is && b.is, positive = both && a.least >= 0 && b.least >= 0;
    switch (x.operation) {
    case PGKM_CONSTANT:
        if (std::fabs(x.number) <= static_cast<double>(most_whole) && x.number == std::trunc(x.number) &&
            !(x.number == 0 && std::signbit(x.number)))
            return within(static_cast<std::int64_t>(x.number), static_cast<std::int64_t>(x.number));
        return none;
    case PGKM_INDEX:
    case PGKM_ARGMIN:
    case PGKM_ARGMAX:
        return within(0, std::max<std::int64_t>(count(x.loop), 1) - 1);
    case PGKM_COUNT:
        return within(0, count(x.loop));
    case PGKM_ADD:
        return both ? within(a.least + b.least, a.most + b.most) : none;
    case PGKM_SUBTRACT:
        return both ? within(a.least - b.most, a.most - b.least) : none;
    case PGKM_MULTIPLY:
        return positive ? within(a.least * b.least, a.most * b.most) : none;
    case PGKM_MODULO:
        return positive && b.least >= 1 ? within(0, std::min(a.most, b.most - 1)) : none;
    case PGKM_FLOOR:
    case PGKM_TRUNC:
        if (!is_whole_quotient(e))
            return none;
        return within(0, whole(at(x.a[0]).a[0]).most / whole(at(x.a[0]).a[1]).least);
    default:
        return none;
    }
}

} // namespace pgkm::generate
