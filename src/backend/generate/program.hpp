// program.hpp (generate) - what can be known of a user's reduction before it runs: which expressions depend on which
// loops and on the row, which are whole numbers or truth values, what each scope has to evaluate.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/reduction.h"

namespace pgkm::generate {

// A set of small numbers.
class Set {
  public:
    Set() = default;
    explicit Set(std::int32_t size) : words_(static_cast<std::size_t>(size + 63) / 64) {}
    bool has(std::int32_t i) const { return (words_[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0; }
    void add(std::int32_t i) { words_[static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64); }
    void drop(std::int32_t i) { words_[static_cast<std::size_t>(i) / 64] &= ~(std::uint64_t{1} << (i % 64)); }
    Set &operator|=(const Set &other);
    Set &operator&=(const Set &other);
    Set &operator-=(const Set &other);

  private:
    std::vector<std::uint64_t> words_;
};

// A truth value, a whole number within [least, most], or any number.
enum class Kind : std::int8_t { number, whole, truth };

struct Facts {
    Kind kind = Kind::number;
    std::int64_t least = 0, most = 0; // of a whole number
    bool dealt = false;               // depends on the row: the work's "loop variables" and what comes of them
    bool finite = false;              // no infinity or NaN can come out of finite arguments
    double cost = 0;                  // operations
    Set loops;                        // whose index it depends on
    Set needed;                       // expressions that are evaluated whenever this one is, in the same scope
};

// The program must be one that check_program() accepts.
class Program {
  public:
    explicit Program(const PgkmReduction &reduction);

    const PgkmReduction &source() const { return source_; }
    const PgkmExpression &at(std::int32_t e) const { return source_.expressions[e]; }
    const Facts &facts(std::int32_t e) const { return facts_[static_cast<std::size_t>(e)]; }
    std::int64_t count(std::int32_t loop) const { return source_.loops[loop]; }
    std::int32_t size() const { return source_.n_expressions; }

    bool is_square(std::int32_t e) const; // power(x, 2)
    // A product or a square: a sum of them takes an fma() each.
    bool is_product(std::int32_t e) const;
    // floor() or trunc() of a quotient of whole numbers, done in integers.
    bool is_whole_quotient(std::int32_t e) const;

  private:
    void learn(std::int32_t e);
    void learn_whole(std::int32_t e, Facts &facts) const;
    void learn_needed(std::int32_t e, Facts &facts) const;

    const PgkmReduction &source_;
    std::vector<Facts> facts_;
};

} // namespace pgkm::generate
