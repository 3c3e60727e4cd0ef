// program.hpp (generate) - a user's reduction and what can be known of it before it runs: which loops and whether the
// row an expression depends on, and whether it is a whole number, which can be an int and a subscript.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/reduction_program.hpp"

namespace pgkm::generate {

// The program must be one that check_program() accepts.
class Program {
  public:
    // A whole number within [least, most].
    struct Whole {
        bool is = false;
        std::int64_t least = 0, most = 0;
    };

    // Throws Error(PGKM_UNSUPPORTED) where it is too long.
    explicit Program(const PgkmReduction &reduction);

    const PgkmReduction &source() const { return source_; }
    const PgkmExpression &at(std::int32_t e) const { return source_.expressions[e]; }
    const ExpressionFacts &facts(std::int32_t e) const { return facts_[static_cast<std::size_t>(e)]; }
    const Whole &whole(std::int32_t e) const { return whole_[static_cast<std::size_t>(e)]; }
    std::int64_t count(std::int32_t loop) const { return source_.loops[loop]; }
    std::int32_t size() const { return source_.n_expressions; }

    // floor() or trunc() of a quotient of whole numbers, done in integers.
    bool is_whole_quotient(std::int32_t e) const;

  private:
    Whole find_whole(std::int32_t e) const;

    const PgkmReduction &source_;
    std::vector<ExpressionFacts> facts_;
    std::vector<Whole> whole_;
};

} // namespace pgkm::generate
