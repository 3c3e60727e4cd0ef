// tree.hpp - a user's reduction as trees, put together in a test, with the memory they stand in.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "reduction/tree.h"

namespace conformance {

// Each term has the next place.
class Tree {
  public:
    using Term = const PgkmTerm *;

    Term number(double number) { return add(PGKM_TERM_NUMBER, nullptr, number, {}); }
    Term truth(bool truth) { return add(PGKM_TERM_TRUTH, nullptr, truth ? 1.0 : 0.0, {}); }
    Term name(const char *name) { return add(PGKM_TERM_NAME, name, 0.0, {}); }
    Term old(const char *name) { return add(PGKM_TERM_OLD, name, 0.0, {}); }
    Term at(Term base, std::initializer_list<Term> subscripts)
    {
        std::vector<Term> arguments = {base};
        arguments.insert(arguments.end(), subscripts);
        return add(PGKM_TERM_SUBSCRIPT, nullptr, 0.0, std::move(arguments));
    }
    Term function(const char *name, std::vector<Term> arguments)
    {
        return add(PGKM_TERM_FUNCTION, name, 0.0, std::move(arguments));
    }
    Term symbol(const char *name, std::vector<Term> arguments)
    {
        return add(PGKM_TERM_OPERATOR, name, 0.0, std::move(arguments));
    }

  private:
    Term add(PgkmTermKind kind, const char *name, double number, std::vector<Term> arguments)
    {
        std::vector<Term> &kept = arguments_.emplace_back(std::move(arguments));
        terms_.push_back({kind, static_cast<std::int32_t>(terms_.size()), name, number,
                          static_cast<std::int32_t>(kept.size()), kept.data()});
        return &terms_.back();
    }

    std::deque<PgkmTerm> terms_;
    std::deque<std::vector<Term>> arguments_;
};

} // namespace conformance
