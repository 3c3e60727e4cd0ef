// expressions.cpp (generate) - operations, scopes, loops, branches.
#include "backend/generate/expressions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "numeric/error.hpp"

namespace pgkm::generate {
namespace {

using std::to_string;

// A program whose branches repeat each other can make any amount of text.
constexpr std::size_t most_text = std::size_t{1} << 20;

std::string literal(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    const std::string number = text;
    return "(" + number + (number.find_first_of(".e") == std::string::npos ? ".0)" : ")");
}

std::string name_of(std::int32_t e)
{
    return "e" + to_string(e);
}

// A and B stand for the arguments.
struct Formula {
    const char *text;
    bool keeps;  // an infinity or NaN of an argument comes out as one
    bool closed; // none comes out of finite arguments
};

// Of PGKM_NEGATE to PGKM_OR.
constexpr Formula formulas[] = {
    {"-A", true, true},
    {"A == 0.0 ? 1.0 : 0.0", false, true},
    {"fabs(A)", true, true},
    {"sqrt(A)", true, false},
    {"exp(A)", false, false},
    {"log(A)", true, false},
    {"floor(A)", true, true},
    {"ceil(A)", true, true},
    {"rint(A)", true, true},
    {"trunc(A)", true, true},
    {"(A > 0.0 ? 1.0 : 0.0) - (A < 0.0 ? 1.0 : 0.0)", false, true},
    {"sin(A)", true, true},
    {"cos(A)", true, true},
    {"tan(A)", true, false},
    {"asin(A)", true, false},
    {"acos(A)", true, false},
    {"atan(A)", false, true},
    {"tanh(A)", false, true},
    {"A + B", true, false},
    {"A - B", true, false},
    {"A * B", true, false},
    {"A / B", false, false},
    {"fmod(A, B)", false, false},
    {"pow(A, B)", false, false},
    {"atan2(A, B)", false, true},
    {"B < A ? B : A", false, true},
    {"B > A ? B : A", false, true},
    {"A == B ? 1.0 : 0.0", false, true},
    {"A != B ? 1.0 : 0.0", false, true},
    {"A < B ? 1.0 : 0.0", false, true},
    {"A <= B ? 1.0 : 0.0", false, true},
    {"A != 0.0 && B != 0.0 ? 1.0 : 0.0", false, true},
    {"A != 0.0 || B != 0.0 ? 1.0 : 0.0", false, true},
};
static_assert(std::size(formulas) == PGKM_CASE - PGKM_NEGATE);

} // namespace

// ---- scopes ----

void Expressions::set(std::int32_t e, std::string text, bool finite)
{
    if (text_.size() > most_text)
        throw Error(PGKM_UNSUPPORTED, "the reduction is too long for the GPU");
    undo_.push_back({e, known(e)});
    known(e) = {std::move(text), finite};
}

void Expressions::open(const std::string &head, std::int32_t loop)
{
    scopes_.emplace_back(undo_.size(), loop);
    if (loop >= 0)
        is_open_[static_cast<std::size_t>(loop)] = true;
    text_.open(head);
}

void Expressions::close()
{
    const auto [begin, loop] = scopes_.back();
    text_.close();
    for (; undo_.size() > begin; undo_.pop_back())
        known(undo_.back().e) = std::move(undo_.back().before);
    if (loop >= 0)
        is_open_[static_cast<std::size_t>(loop)] = false;
    scopes_.pop_back();
}

void Expressions::open_loop(std::int32_t loop, double cost)
{
    const std::string i = "i" + to_string(loop);
    const auto count = static_cast<double>(program_.count(loop));
    if (count * cost <= 256)
        text_.line("#pragma unroll");
    open("for (int " + i + " = 0; " + i + " < " + to_string(program_.count(loop)) + "; ++" + i + ")", loop);
    if (count * cost > 0x1p18) { // a poll in some 2^16 operations
        const double between = std::exp2(std::floor(std::log2(std::max(1.0, 0x1p16 / cost))));
        text_.line("if (" + i + " % " + to_string(static_cast<std::int64_t>(between)) + " == 0 && *stop != 0)");
        text_.line("    return true;");
    }
}

void Expressions::hoist(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const std::vector<std::int32_t> &loops = program_.facts(e).loops;
    if (x.operation <= PGKM_INDEX || !known(e).text.empty())
        return;
    if (std::all_of(loops.begin(), loops.end(), [&](std::int32_t l) { return is_open_[static_cast<std::size_t>(l)]; }))
        return void(value(e));
    const bool reached = !goes_over_loop(x.operation) || program_.count(x.loop) > 0;
    for (int i = 0; reached && i < (x.operation == PGKM_CASE ? 1 : arguments_of(x.operation)); ++i)
        if (x.a[i] >= 0)
            hoist(x.a[i]);
}

// ---- values ----

const std::string &Expressions::value(std::int32_t e)
{
    if (known(e).text.empty())
        compute(e);
    return known(e).text;
}

std::string Expressions::number(std::int32_t e)
{
    return program_.whole(e).is ? "double(" + value(e) + ")" : value(e);
}

void Expressions::require_finite(std::int32_t e)
{
    value(e);
    if (known(e).finite)
        return;
    text_.line("if (!finite(" + known(e).text + "))");
    text_.line("    return false;");
    set(e, known(e).text, true);
}

std::string Expressions::finite_number(std::int32_t e)
{
    require_finite(e);
    return number(e);
}

void Expressions::place(const std::string &name, const char *type, std::int32_t e, std::int64_t end)
{
    const Program::Whole &range = program_.whole(e);
    const std::string from = range.is ? whole(e) : "place(" + number(e) + ", " + to_string(end) + ")";
    text_.line("const " + std::string(type) + " " + name + " = " + from + ";");
    if (range.is && range.least >= 0 && range.most < end)
        return;
    text_.line("if (" + name + " < 0" + (range.is ? " || " + name + " >= " + to_string(end) : "") + ")");
    text_.line("    return false;");
}

void Expressions::define(std::int32_t e, const std::string &text, bool finite)
{
    text_.line(std::string("const ") + (program_.whole(e).is ? "int " : "double ") + name_of(e) + " = " + text + ";");
    set(e, name_of(e), finite);
}

void Expressions::compute(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    if (x.operation == PGKM_CONSTANT)
        return set(
            e, program_.whole(e).is ? "(" + to_string(static_cast<std::int64_t>(x.number)) + ")" : literal(x.number),
            true);
    if (x.operation == PGKM_INDEX)
        return set(e, "i" + to_string(x.loop), true);
    if (x.operation == PGKM_COLUMN || x.operation == PGKM_PARAMETER)
        return define(e, element(e), true);
    if (x.operation == PGKM_CASE)
        return define_case(e);
    if (goes_over_loop(x.operation))
        return define_loop(e);
    if (program_.whole(e).is)
        return define(e, whole_formula(e), true);
    const Formula &formula =
        is_square(program_.source(), x) ? formulas[PGKM_MULTIPLY - PGKM_NEGATE] : formulas[x.operation - PGKM_NEGATE];
    const int count = arguments_of(x.operation);
    std::string arguments[2];
    bool finite = formula.closed;
    for (int i = 0; i < count; ++i) {
        const std::int32_t a = x.a[is_square(program_.source(), x) ? 0 : i];
        arguments[i] = formula.keeps ? number(a) : finite_number(a);
        finite = finite && known(a).finite;
    }
    std::string text;
    for (const char *c = formula.text; *c != 0; ++c)
        text += *c == 'A' ? arguments[0] : *c == 'B' ? arguments[1] : std::string(1, *c);
    define(e, text, finite);
}

std::string Expressions::whole_formula(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const PgkmExpression &of = program_.is_whole_quotient(e) ? program_.at(x.a[0]) : x;
    const char *const sign = of.operation == PGKM_ADD        ? " + "
                             : of.operation == PGKM_SUBTRACT ? " - "
                             : of.operation == PGKM_MULTIPLY ? " * "
                             : of.operation == PGKM_MODULO   ? " % "
                                                             : " / ";
    const std::string a = whole(of.a[0]);
    return a + sign + whole(of.a[1]);
}

// "0" where there is no subscript.
std::string Expressions::subscript(std::int32_t e, int argument)
{
    const PgkmExpression &x = program_.at(e);
    const std::int32_t a = x.a[argument];
    if (a < 0)
        return "0";
    const Program::Whole &range = program_.whole(a);
    if (range.is && range.least >= 0 && range.most < x.extent[argument])
        return whole(a);
    const std::string name = "s" + to_string(e) + "_" + to_string(argument);
    place(name, "int", a, x.extent[argument]);
    return name;
}

// A column's or a parameter's value.
std::string Expressions::element(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const std::string i = subscript(e, 0);
    if (x.operation == PGKM_COLUMN) {
        const std::string value = "row[" + to_string(x.first) + " + " + i + "]";
        return float32_ ? "double(" + value + ")" : value;
    }
    const std::string j = subscript(e, 1);
    for (const Input &input : inputs_)
        if (input.first == x.first && input.rows == x.extent[0] && input.columns == x.extent[1])
            return input.name + "[" + (input.values() >> 31 != 0 ? "(long long)" : "") + i + " * " +
                   to_string(x.extent[1]) + " + " + j + "]";
    return "";
}

// ---- branches and loops ----

void Expressions::define_case(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const std::string condition = truth(x.a[0]);
    bool finite = true;
    text_.line("double " + name_of(e) + ";");
    for (const int branch : {1, 2}) {
        open(branch == 1 ? "if " + condition : "else");
        const std::string result = number(x.a[branch]);
        text_.line(name_of(e) + " = " + result + ";");
        finite = finite && known(x.a[branch]).finite;
        close();
    }
    set(e, name_of(e), finite);
}

void Expressions::add_to(const std::string &total, std::int32_t e)
{
    if (const Factors factors = factors_of(program_.source(), program_.at(e))) {
        const std::string x = number(factors.x), y = number(factors.y);
        return text_.line(total + " = fma(" + x + ", " + y + ", " + total + ");");
    }
    const std::string x = number(e);
    text_.line(total + " += " + x + ";");
}

void Expressions::define_loop(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const PgkmOperation operation = x.operation;
    const bool least = operation == PGKM_MIN || operation == PGKM_ARGMIN,
               most = operation == PGKM_MAX || operation == PGKM_ARGMAX,
               has_place = operation == PGKM_ARGMIN || operation == PGKM_ARGMAX;
    const std::string name = name_of(e), best = has_place ? name + "_best" : name;
    if (program_.count(x.loop) > 0)
        hoist(x.a[0]);
    if (has_place || operation == PGKM_COUNT)
        text_.line("int " + name + " = 0;");
    if (operation != PGKM_COUNT)
        text_.line("double " + best + " = " +
                   (least || most            ? least ? "infinity()" : "-infinity()"
                    : operation == PGKM_PROD ? "1.0"
                                             : "0.0") +
                   ";");
    if (program_.count(x.loop) > 0) {
        open_loop(x.loop, program_.facts(x.a[0]).cost);
        if (operation == PGKM_SUM) {
            add_to(name, x.a[0]);
        } else {
            const std::string body = operation == PGKM_PROD ? number(x.a[0]) : finite_number(x.a[0]);
            if (operation == PGKM_PROD)
                text_.line(name + " *= " + body + ";");
            else if (operation == PGKM_COUNT)
                text_.line(name + " += " + body + " != 0.0 ? 1 : 0;");
            else {
                text_.open("if (" + body + (least ? " < " : " > ") + best + ")");
                text_.line(best + " = " + body + ";");
                if (has_place)
                    text_.line(name + " = i" + to_string(x.loop) + ";");
                text_.close();
            }
        }
        close();
    }
    set(e, name, least || most || operation == PGKM_COUNT);
}

} // namespace pgkm::generate
