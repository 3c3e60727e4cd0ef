// formulas.cpp (generate) - the text of one operation on values that are there.
#include <cmath>
#include <cstdio>

#include "backend/generate/expressions.hpp"

namespace pgkm::generate {
namespace {

std::string literal(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    std::string result = text;
    if (result.find_first_of(".e") == std::string::npos)
        result += ".0";
    return std::signbit(value) ? "(" + result + ")" : result;
}

} // namespace

std::string Expressions::number(std::int32_t e)
{
    if (program_.at(e).operation == PGKM_CONSTANT)
        return literal(program_.at(e).number);
    const std::string &text = known(e).text;
    switch (program_.facts(e).kind) {
    case Kind::whole:
        return "double(" + text + ")";
    case Kind::truth:
        return "(" + text + " ? 1.0 : 0.0)";
    default:
        return text;
    }
}

std::string Expressions::truth(std::int32_t e)
{
    const std::string &text = known(e).text;
    switch (program_.facts(e).kind) {
    case Kind::whole:
        return "(" + text + " != 0)";
    case Kind::truth:
        return text;
    default:
        return "(" + text + " != 0.0)";
    }
}

std::string Expressions::whole(std::int32_t e)
{
    return known(e).text;
}

std::string Expressions::function(const char *name, std::int32_t e, bool second)
{
    const PgkmExpression &x = program_.at(e);
    std::string text = number(x.a[0]);
    if (second)
        text += ", " + number(x.a[1]);
    return std::string(name) + "(" + text + ")";
}

std::string Expressions::infix(const char *sign, std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    return "(" + number(x.a[0]) + sign + number(x.a[1]) + ")";
}

// Of whole numbers in integers. An infinity or NaN would get lost.
std::string Expressions::comparison(const char *sign, std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    require_finite(x.a[0]);
    require_finite(x.a[1]);
    if (program_.facts(x.a[0]).kind == Kind::whole && program_.facts(x.a[1]).kind == Kind::whole)
        return "(" + whole(x.a[0]) + sign + whole(x.a[1]) + ")";
    return infix(sign, e);
}

// The second argument where it is less (or greater), else the first.
std::string Expressions::chosen(const char *sign, std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    require_finite(x.a[0]);
    require_finite(x.a[1]);
    local(x.a[0]);
    local(x.a[1]);
    const bool is_whole = program_.facts(e).kind == Kind::whole;
    const std::string a = is_whole ? whole(x.a[0]) : number(x.a[0]), b = is_whole ? whole(x.a[1]) : number(x.a[1]);
    return "(" + b + sign + a + " ? " + b + " : " + a + ")";
}

// Empty where there is no subscript.
std::string Expressions::subscript(std::int32_t e, int argument)
{
    const PgkmExpression &x = program_.at(e);
    const std::int32_t a = x.a[argument];
    if (a < 0)
        return "";
    const Facts &facts = program_.facts(a);
    if (facts.kind == Kind::whole && facts.least >= 0 && facts.most < x.extent[argument])
        return whole(a);
    const std::string name = "s" + std::to_string(e) + (argument == 0 ? "" : "_1");
    place(name, "int", a, x.extent[argument]);
    return name;
}

// A column's or a parameter's value.
std::string Expressions::element(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const std::string i = subscript(e, 0);
    if (x.operation == PGKM_COLUMN) {
        const std::string first = std::to_string(x.first - first_);
        const std::string value = "row[" + (i.empty() ? first : x.first == first_ ? i : first + " + " + i) + "]";
        return float32_ ? "double(" + value + ")" : value;
    }
    const std::string j = subscript(e, 1);
    std::string name;
    for (const Input &input : inputs_)
        if (input.first == x.first && input.rows == x.extent[0] && input.columns == x.extent[1])
            name = input.name;
    std::string place = i.empty() ? "0" : i;
    if (x.extent[1] != 1 && !i.empty())
        place = (std::int64_t{x.extent[0]} * x.extent[1] >> 31 != 0 ? "(long long)" : "") + i + " * " +
                std::to_string(x.extent[1]);
    if (!j.empty())
        place = i.empty() ? j : place + " + " + j;
    return name + "[" + place + "]";
}

std::string Expressions::whole_formula(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    switch (x.operation) {
    case PGKM_CONSTANT:
        return x.number < 0 ? "(" + std::to_string(static_cast<std::int64_t>(x.number)) + ")"
                            : std::to_string(static_cast<std::int64_t>(x.number));
    case PGKM_INDEX:
        return "i" + std::to_string(x.loop);
    case PGKM_ADD:
        return "(" + whole(x.a[0]) + " + " + whole(x.a[1]) + ")";
    case PGKM_SUBTRACT:
        return "(" + whole(x.a[0]) + " - " + whole(x.a[1]) + ")";
    case PGKM_MULTIPLY:
        return "(" + whole(x.a[0]) + " * " + whole(x.a[1]) + ")";
    case PGKM_MODULO:
        return "(" + whole(x.a[0]) + " % " + whole(x.a[1]) + ")";
    case PGKM_ABS:
        return "abs(" + whole(x.a[0]) + ")";
    case PGKM_LEAST:
        return chosen(" < ", e);
    case PGKM_GREATEST:
        return chosen(" > ", e);
    case PGKM_SIGN: {
        require_finite(x.a[0]);
        local(x.a[0]);
        const std::string a = number(x.a[0]);
        return "((" + a + " > 0.0 ? 1 : 0) - (" + a + " < 0.0 ? 1 : 0))";
    }
    case PGKM_FLOOR:
    case PGKM_TRUNC:
        if (program_.is_whole_quotient(e)) {
            const PgkmExpression &quotient = program_.at(x.a[0]);
            return "(" + whole(quotient.a[0]) + " / " + whole(quotient.a[1]) + ")";
        }
        return whole(x.a[0]);
    default: // ceil, round
        return whole(x.a[0]);
    }
}

std::string Expressions::formula(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const auto lossless = [&](const char *name, bool second = false) { return function(name, e, second); };
    const auto lossy = [&](const char *name, bool second = false) {
        require_finite(x.a[0]);
        if (second)
            require_finite(x.a[1]);
        return function(name, e, second);
    };
    const auto both = [&](const char *sign) {
        require_finite(x.a[0]);
        require_finite(x.a[1]);
        return "(" + truth(x.a[0]) + sign + truth(x.a[1]) + ")";
    };
    switch (x.operation) {
    case PGKM_CONSTANT:
        return literal(x.number);
    case PGKM_COLUMN:
    case PGKM_PARAMETER:
        return element(e);
    case PGKM_NEGATE:
        return "(-" + number(x.a[0]) + ")";
    case PGKM_NOT:
        require_finite(x.a[0]);
        return "(!" + truth(x.a[0]) + ")";
    case PGKM_ABS:
        return lossless("fabs");
    case PGKM_SQRT:
        return lossless("sqrt");
    case PGKM_EXP:
        return lossy("exp");
    case PGKM_LN:
        return lossless("log");
    case PGKM_FLOOR:
        return lossless("floor");
    case PGKM_CEIL:
        return lossless("ceil");
    case PGKM_ROUND:
        return lossless("rint");
    case PGKM_TRUNC:
        return lossless("trunc");
    case PGKM_SIN:
        return lossless("sin");
    case PGKM_COS:
        return lossless("cos");
    case PGKM_TAN:
        return lossless("tan");
    case PGKM_ASIN:
        return lossless("asin");
    case PGKM_ACOS:
        return lossless("acos");
    case PGKM_ATAN:
        return lossy("atan");
    case PGKM_TANH:
        return lossy("tanh");
    case PGKM_ADD:
        return infix(" + ", e);
    case PGKM_SUBTRACT:
        return infix(" - ", e);
    case PGKM_MULTIPLY:
        return infix(" * ", e);
    case PGKM_DIVIDE:
        require_finite(x.a[1]);
        return infix(" / ", e);
    case PGKM_MODULO:
        return lossy("fmod", true);
    case PGKM_POWER:
        if (program_.is_square(e)) {
            local(x.a[0]);
            const std::string a = number(x.a[0]);
            return "(" + a + " * " + a + ")";
        }
        return lossy("pow", true);
    case PGKM_ATAN2:
        return lossy("atan2", true);
    case PGKM_LEAST:
        return chosen(" < ", e);
    case PGKM_GREATEST:
        return chosen(" > ", e);
    case PGKM_EQUAL:
        return comparison(" == ", e);
    case PGKM_NOT_EQUAL:
        return comparison(" != ", e);
    case PGKM_LESS:
        return comparison(" < ", e);
    case PGKM_LESS_EQUAL:
        return comparison(" <= ", e);
    case PGKM_AND:
        return both(" && ");
    case PGKM_OR:
        return both(" || ");
    default:
        return "";
    }
}

} // namespace pgkm::generate
