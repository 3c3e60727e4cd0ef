// expressions.cpp (generate) - scopes, names, loops, branches. The formulas are in formulas.cpp.
#include "backend/generate/expressions.hpp"

#include <algorithm>
#include <cmath>

#include "backend/reduction_walk.hpp"
#include "numeric/error.hpp"

namespace pgkm::generate {
namespace {

// A program whose branches repeat each other can make any amount of text.
constexpr std::size_t most_text = std::size_t{1} << 20;
constexpr std::size_t most_inline = 72; // characters

bool is_name(const std::string &text)
{
    return std::all_of(text.begin(), text.end(), [](char c) { return std::isalnum(c) || c == '_'; });
}

// Without the parentheses around all of it.
std::string bare(const std::string &text)
{
    int depth = 0;
    if (text.empty() || text.front() != '(' || text.back() != ')')
        return text;
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0)
            return text;
    }
    return text.substr(1, text.size() - 2);
}

const char *type_of(Kind kind)
{
    return kind == Kind::truth ? "bool" : kind == Kind::whole ? "int" : "double";
}

std::string name_of(std::int32_t e)
{
    return "e" + std::to_string(e);
}

} // namespace

Expressions::Expressions(const Program &program, const std::vector<Input> &inputs, bool float32, Text &text,
                         std::int64_t first)
    : program_(program), inputs_(inputs), float32_(float32), text_(text), first_(first),
      known_(static_cast<std::size_t>(program.size())), uses_(known_.size()), users_(known_.size(), -1)
{
    for (std::int32_t e = 0; e < program.size(); ++e)
        for (const std::int32_t a : program.at(e).a)
            if (a >= 0) {
                ++uses_[static_cast<std::size_t>(a)];
                users_[static_cast<std::size_t>(a)] = e;
            }
}

void Expressions::open(const std::string &head)
{
    marks_.push_back(undo_.size());
    text_.open(head);
}

void Expressions::close()
{
    text_.close();
    while (undo_.size() > marks_.back()) {
        known(undo_.back().e) = std::move(undo_.back().before);
        undo_.pop_back();
    }
    marks_.pop_back();
}

void Expressions::open_loop(std::int32_t loop, double cost, const std::string &from, const std::string &to)
{
    const std::string i = "i" + std::to_string(loop), end = to.empty() ? std::to_string(program_.count(loop)) : to;
    const auto count = static_cast<double>(program_.count(loop));
    if (count * cost <= 256 && to.empty())
        text_.line("#pragma unroll");
    open("for (int " + i + " = " + from + "; " + i + " < " + end + "; ++" + i + ")");
    if (count * cost > 0x1p18) { // a poll in some 2^16 operations
        const double between = std::max(1.0, 0x1p16 / cost);
        const auto mask = static_cast<std::int64_t>(std::exp2(std::floor(std::log2(between)))) - 1;
        text_.line("if ((" + i + " & " + std::to_string(mask) + ") == 0 && *stop != 0)");
        text_.line("    return true;");
    }
}

void Expressions::set(std::int32_t e, std::string text, bool finite)
{
    undo_.push_back({e, known(e)});
    known(e) = {std::move(text), finite};
}

void Expressions::check_size() const
{
    if (text_.size() > most_text)
        throw Error(PGKM_UNSUPPORTED, "the reduction is too long for the GPU");
}

Set Expressions::outside(std::int32_t e, std::int32_t loop) const
{
    Set needed = program_.facts(e).needed;
    for (std::int32_t i = 0; loop >= 0 && i <= e; ++i)
        if (program_.facts(i).loops.has(loop))
            needed.drop(i);
    return needed;
}

void Expressions::evaluate(const Set &needed)
{
    for (std::int32_t e = 0; e < program_.size(); ++e)
        if (needed.has(e) && known(e).text.empty())
            compute(e, needed);
    check_size();
}

void Expressions::compute(std::int32_t e, const Set &scope)
{
    const PgkmExpression &x = program_.at(e);
    if (x.operation == PGKM_CASE)
        return define_case(e, scope);
    if (goes_over_loop(x.operation))
        return define_loop(e);
    const std::string text = program_.facts(e).kind == Kind::whole ? whole_formula(e) : formula(e);
    bool finite = program_.facts(e).finite;
    for (const std::int32_t a : x.a)
        finite &= a < 0 || known(a).finite || program_.facts(e).kind != Kind::number;
    define(e, text, scope, finite);
}

// A name, or the text itself where its only use is in this scope.
void Expressions::define(std::int32_t e, const std::string &text, const Set &scope, bool finite)
{
    const PgkmOperation operation = program_.at(e).operation;
    const std::int32_t user = users_[static_cast<std::size_t>(e)];
    const bool once = uses_[static_cast<std::size_t>(e)] == 1 && scope.has(user) &&
                      !goes_over_loop(program_.at(user).operation) && text.size() <= most_inline;
    if (operation == PGKM_CONSTANT || operation == PGKM_INDEX || is_name(text) || once)
        return set(e, text, finite);
    text_.line(std::string("const ") + type_of(program_.facts(e).kind) + " " + name_of(e) + " = " + bare(text) + ";");
    set(e, name_of(e), finite);
}

std::string Expressions::local(std::int32_t e)
{
    if (!is_name(known(e).text) && program_.at(e).operation != PGKM_CONSTANT) {
        text_.line(std::string("const ") + type_of(program_.facts(e).kind) + " " + name_of(e) + " = " +
                   bare(known(e).text) + ";");
        set(e, name_of(e), known(e).finite);
    }
    return known(e).text;
}

void Expressions::require_finite(std::int32_t e)
{
    if (known(e).finite)
        return;
    text_.line("if (!finite(" + local(e) + "))");
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
    const Facts &facts = program_.facts(e);
    const bool is_whole = facts.kind == Kind::whole;
    const std::string value = is_whole ? bare(whole(e)) : "place(" + bare(number(e)) + ", " + std::to_string(end) + ")";
    text_.line("const " + std::string(type) + " " + name + " = " + value + ";");
    if (!is_whole)
        text_.line("if (" + name + " < 0)");
    else if (facts.least < 0 || facts.most >= end)
        text_.line("if (" + name + " < 0 || " + name + " >= " + std::to_string(end) + ")");
    else
        return;
    text_.line("    return false;");
    set(e, known(e).text, true);
}

// Computed already, or nothing to compute.
bool Expressions::is_at_hand(std::int32_t e) const
{
    const PgkmOperation operation = program_.at(e).operation;
    return !known_[static_cast<std::size_t>(e)].text.empty() || operation == PGKM_CONSTANT || operation == PGKM_INDEX;
}

void Expressions::define_case(std::int32_t e, const Set &scope)
{
    const PgkmExpression &x = program_.at(e);
    const Kind kind = program_.facts(e).kind;
    require_finite(x.a[0]);
    const auto value = [&](std::int32_t branch) {
        return kind == Kind::whole ? whole(branch) : kind == Kind::truth ? truth(branch) : number(branch);
    };
    if (is_at_hand(x.a[1]) && is_at_hand(x.a[2])) {
        evaluate(x.a[1]);
        evaluate(x.a[2]);
        return define(e, "(" + truth(x.a[0]) + " ? " + value(x.a[1]) + " : " + value(x.a[2]) + ")", scope,
                      known(x.a[1]).finite && known(x.a[2]).finite);
    }
    bool finite = true;
    text_.line(std::string(type_of(kind)) + " " + name_of(e) + ";");
    for (const int branch : {1, 2}) {
        open(branch == 1 ? "if (" + bare(truth(x.a[0])) + ")" : "else");
        evaluate(x.a[branch]);
        text_.line(name_of(e) + " = " + bare(value(x.a[branch])) + ";");
        finite &= known(x.a[branch]).finite;
        close();
    }
    set(e, name_of(e), finite || kind != Kind::number);
}

void Expressions::define_loop(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const PgkmOperation operation = x.operation;
    const bool least = operation == PGKM_MIN || operation == PGKM_ARGMIN,
               most = operation == PGKM_MAX || operation == PGKM_ARGMAX,
               place = operation == PGKM_ARGMIN || operation == PGKM_ARGMAX;
    const std::string name = name_of(e);
    if (operation == PGKM_COUNT || place)
        text_.line("int " + name + " = 0;");
    if (operation != PGKM_COUNT)
        text_.line("double " + name + (place ? "_best" : "") + " = " +
                   (least                    ? "infinity()"
                    : most                   ? "-infinity()"
                    : operation == PGKM_PROD ? "1.0"
                                             : "0.0") +
                   ";");
    if (program_.count(x.loop) > 0) {
        open_loop(x.loop, program_.facts(x.a[0]).cost);
        step(e);
        close();
    }
    set(e, name, least || most || operation == PGKM_COUNT);
}

void Expressions::add_to(const std::string &total, std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    if (!program_.is_product(e)) {
        evaluate(e);
        return text_.line(total + " += " + bare(number(e)) + ";");
    }
    const std::int32_t second = x.operation == PGKM_MULTIPLY ? x.a[1] : x.a[0];
    Set needed = program_.facts(x.a[0]).needed;
    needed |= program_.facts(second).needed;
    evaluate(needed);
    if (second == x.a[0])
        local(second);
    const std::string y = number(second);
    text_.line(total + " = fma(" + bare(number(x.a[0])) + ", " + bare(y) + ", " + total + ");");
}

// The body of a loop, and what becomes of its value.
void Expressions::step(std::int32_t e)
{
    const PgkmExpression &x = program_.at(e);
    const std::string name = name_of(e), index = "i" + std::to_string(x.loop);
    if (x.operation == PGKM_SUM)
        return add_to(name, x.a[0]);
    evaluate(x.a[0]);
    switch (x.operation) {
    case PGKM_PROD:
        text_.line(name + " *= " + bare(number(x.a[0])) + ";");
        return;
    case PGKM_COUNT:
        require_finite(x.a[0]);
        text_.line(name + " += " + truth(x.a[0]) + " ? 1 : 0;");
        return;
    default:
        break;
    }
    require_finite(x.a[0]);
    const char *const sign = x.operation == PGKM_MIN || x.operation == PGKM_ARGMIN ? " < " : " > ";
    const bool place = x.operation == PGKM_ARGMIN || x.operation == PGKM_ARGMAX;
    local(x.a[0]);
    const std::string value = number(x.a[0]), best = name + (place ? "_best" : "");
    text_.open("if (" + value + sign + best + ")");
    text_.line(best + " = " + value + ";");
    if (place)
        text_.line(name + " = " + index + ";");
    text_.close();
}

} // namespace pgkm::generate
