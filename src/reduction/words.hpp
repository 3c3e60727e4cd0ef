// words.hpp - the words of the language: which functions and operators there are, and what each means.
#pragma once

#include "reduction/tree.h"

namespace pgkm::reduction {

enum class Meaning {
    operation, // of one number, or of each element of vectors
    swapped,   // the same, with its arguments the other way round
    chain,     // the same, of one argument or more, from the left
    itself,    // the argument
    pi,
    loop,   // over name = 0 .. arguments[1] - 1 of arguments[2]; with one argument over the elements of it
    vector, // of the values that a loop with a name goes over
    cardinality,
    array_length
};

struct Word {
    const char *word;
    int arguments; // -1: 1 or more
    PgkmOperation operation;
    Meaning meaning = Meaning::operation;
};

// Of a function or an operator; throws TextError, 0A000, for what the language does not have.
const Word &word_of(const PgkmTerm &term);

// Whether arguments[0] names an index, which arguments[2] may use.
inline bool binds(const Word &word, const PgkmTerm &term)
{
    return word.meaning == Meaning::vector || (word.meaning == Meaning::loop && term.n_arguments == 3);
}

} // namespace pgkm::reduction
