// words.cpp - the closed list of words.
#include "reduction/words.hpp"

#include <span>
#include <string>
#include <string_view>

#include "reduction/text_error.hpp"

namespace pgkm::reduction {
namespace {

constexpr Word functions[] = {{"abs", 1, PGKM_ABS},      {"sqrt", 1, PGKM_SQRT},   {"exp", 1, PGKM_EXP},
                              {"ln", 1, PGKM_LN},        {"floor", 1, PGKM_FLOOR}, {"ceil", 1, PGKM_CEIL},
                              {"ceiling", 1, PGKM_CEIL}, {"round", 1, PGKM_ROUND}, {"trunc", 1, PGKM_TRUNC},
                              {"sign", 1, PGKM_SIGN},    {"sin", 1, PGKM_SIN},     {"cos", 1, PGKM_COS},
                              {"tan", 1, PGKM_TAN},      {"asin", 1, PGKM_ASIN},   {"acos", 1, PGKM_ACOS},
                              {"atan", 1, PGKM_ATAN},    {"tanh", 1, PGKM_TANH},   {"atan2", 2, PGKM_ATAN2},
                              {"power", 2, PGKM_POWER},  {"pow", 2, PGKM_POWER},   {"mod", 2, PGKM_MODULO}};

constexpr Word forms[] = {{"pi", 0, PGKM_CONSTANT, Meaning::pi},
                          {"sum", 3, PGKM_SUM, Meaning::loop},
                          {"prod", 3, PGKM_PROD, Meaning::loop},
                          {"min", 3, PGKM_MIN, Meaning::loop},
                          {"max", 3, PGKM_MAX, Meaning::loop},
                          {"argmin", 3, PGKM_ARGMIN, Meaning::loop},
                          {"argmax", 3, PGKM_ARGMAX, Meaning::loop},
                          {"count", 3, PGKM_COUNT, Meaning::loop},
                          {"vector", 3, PGKM_INDEX, Meaning::vector},
                          {"cardinality", 1, PGKM_CONSTANT, Meaning::cardinality},
                          {"array_length", 2, PGKM_CONSTANT, Meaning::array_length}};

constexpr Word operators[] = {{"+", 2, PGKM_ADD},      {"-", 2, PGKM_SUBTRACT},    {"-", 1, PGKM_NEGATE},
                              {"*", 2, PGKM_MULTIPLY}, {"/", 2, PGKM_DIVIDE},      {"%", 2, PGKM_MODULO},
                              {"^", 2, PGKM_POWER},    {"=", 2, PGKM_EQUAL},       {"<>", 2, PGKM_NOT_EQUAL},
                              {"<", 2, PGKM_LESS},     {"<=", 2, PGKM_LESS_EQUAL}, {"not", 1, PGKM_NOT},
                              {"case", 3, PGKM_CASE}};

constexpr Word other_operators[] = {{"+", 1, PGKM_ADD, Meaning::itself},
                                    {">", 2, PGKM_LESS, Meaning::swapped},
                                    {">=", 2, PGKM_LESS_EQUAL, Meaning::swapped},
                                    {"and", -1, PGKM_AND, Meaning::chain},
                                    {"or", -1, PGKM_OR, Meaning::chain},
                                    {"least", -1, PGKM_LEAST, Meaning::chain},
                                    {"greatest", -1, PGKM_GREATEST, Meaning::chain}};

[[noreturn]] void refuse(const PgkmTerm &term, const std::string &text)
{
    raise(sqlstate::unsupported, term.place, text);
}

// What stands in the text is of that form.
bool fits(const Word &word, const PgkmTerm &term)
{
    const bool named = term.n_arguments == 3 && term.arguments[0]->kind == PGKM_TERM_NAME;
    switch (word.meaning) {
    case Meaning::loop:
        return named || term.n_arguments == 1;
    case Meaning::vector:
        return named;
    case Meaning::array_length:
        return term.n_arguments == 2 && term.arguments[1]->kind == PGKM_TERM_NUMBER &&
               (term.arguments[1]->number == 1.0 || term.arguments[1]->number == 2.0);
    default:
        return word.arguments == term.n_arguments || (word.arguments < 0 && term.n_arguments > 0);
    }
}

[[noreturn]] void refuse_function(const PgkmTerm &term, const Word *word)
{
    const std::string name = term.name, of = " of a reduction is ", named = "(index, count, expression)";
    if (word != nullptr && term.n_arguments > 0) {
        if (word->meaning == Meaning::loop)
            refuse(term, name + of + name + named + " or " + name + "(vector)");
        if (word->meaning == Meaning::vector)
            refuse(term, name + of + name + named);
        if (word->meaning == Meaning::cardinality || word->meaning == Meaning::array_length)
            refuse(term, "lengths in a reduction are cardinality(name), array_length(name, 1) and "
                         "array_length(name, 2)");
    }
    refuse(term, name + " with " + std::to_string(term.n_arguments) +
                     (term.n_arguments == 1 ? " argument" : " arguments") + " is no function of reductions");
}

// The word; that of its number of arguments, if there are several.
const Word *find(const PgkmTerm &term, std::initializer_list<std::span<const Word>> lists)
{
    const Word *found = nullptr;
    for (const std::span<const Word> words : lists)
        for (const Word &word : words)
            if (term.name == std::string_view(word.word) && (found == nullptr || !fits(*found, term)))
                found = &word;
    return found;
}

} // namespace

const Word &word_of(const PgkmTerm &term)
{
    const bool is_function = term.kind == PGKM_TERM_FUNCTION;
    const Word *word = is_function ? find(term, {functions, forms}) : find(term, {operators, other_operators});
    if (word != nullptr && fits(*word, term))
        return *word;
    if (is_function)
        refuse_function(term, word);
    refuse(term, std::string("operator ") + term.name +
                     (word == nullptr ? " is no operator of reductions" : " needs two arguments"));
}

} // namespace pgkm::reduction

std::int32_t pgkm_term_binds(const PgkmTerm *term, PgkmTextError *error)
{
    using namespace pgkm::reduction;
    bool found = false;
    return at_border(error, [&] { found = binds(word_of(*term), *term); }) ? found : -1;
}
