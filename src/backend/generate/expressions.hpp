// expressions.hpp (generate) - the text of a program's expressions.
//
// A scope is the body of a function, of a loop, or of a branch. What every way through a scope needs is computed there
// once, in the outermost scope where that holds (Facts::needed): what does not depend on a loop's index lies outside of
// the loop, what only one branch of a CASE needs lies in that branch.
//
// An infinity or NaN is looked for where it could get lost, which is in comparisons and the like, and where a value
// leaves the row. So a sum of products is checked once.
#pragma once

#include <string>
#include <vector>

#include "backend/generate/layout.hpp"
#include "backend/generate/program.hpp"
#include "backend/generate/text.hpp"

namespace pgkm::generate {

class Expressions {
  public:
    // The text is that of a function with `row`, the inputs by their names and `stop`, which returns whether the row is
    // without a fault. row[0] is column `first` of the row.
    Expressions(const Program &program, const std::vector<Input> &inputs, bool float32, Text &text,
                std::int64_t first = 0);

    // Computes what is not there yet; the values are then to be had from number(), truth() and whole().
    void evaluate(const Set &needed);
    void evaluate(std::int32_t e) { evaluate(program_.facts(e).needed); }
    // A name of e's value that is there without being computed.
    void give(std::int32_t e, const std::string &name) { set(e, name, true); }
    // total += e, as a statement; of a product by one fma().
    void add_to(const std::string &total, std::int32_t e);
    // What e needs outside of a loop.
    Set outside(std::int32_t e, std::int32_t loop) const;

    std::string number(std::int32_t e);
    std::string truth(std::int32_t e);
    std::string whole(std::int32_t e); // of an expression of Kind::whole
    // As number(), or with an end of the function where it is none.
    std::string finite_number(std::int32_t e);
    // A whole number in 0 .. end - 1 by this name, or an end of the function.
    void place(const std::string &name, const char *type, std::int32_t e, std::int64_t end);

    // A scope within; the names made in it go when it is closed.
    void open(const std::string &head);
    void close();
    // The loop of an item; with an index within [from, to) where these are given.
    void open_loop(std::int32_t loop, double cost, const std::string &from = "0", const std::string &to = "");

  private:
    struct Known {
        std::string text; // empty: not computed in this scope
        bool finite = false;
    };
    struct Undo {
        std::int32_t e;
        Known before;
    };

    Known &known(std::int32_t e) { return known_[static_cast<std::size_t>(e)]; }
    void set(std::int32_t e, std::string text, bool finite);
    void compute(std::int32_t e, const Set &scope);
    void define(std::int32_t e, const std::string &text, const Set &scope, bool finite);
    void define_case(std::int32_t e, const Set &scope);
    void define_loop(std::int32_t e);
    void step(std::int32_t e);
    void require_finite(std::int32_t e);
    std::string local(std::int32_t e);
    std::string subscript(std::int32_t e, int argument);
    std::string formula(std::int32_t e);
    std::string whole_formula(std::int32_t e);
    std::string element(std::int32_t e);
    std::string function(const char *name, std::int32_t e, bool second = false);
    std::string infix(const char *sign, std::int32_t e);
    std::string comparison(const char *sign, std::int32_t e);
    std::string chosen(const char *sign, std::int32_t e);
    bool is_at_hand(std::int32_t e) const;
    void check_size() const;

    const Program &program_;
    const std::vector<Input> &inputs_;
    bool float32_;
    Text &text_;
    std::int64_t first_;
    std::vector<Known> known_;
    std::vector<Undo> undo_;
    std::vector<std::size_t> marks_;  // of undo_, a scope each
    std::vector<std::int32_t> uses_;  // how often an expression is used
    std::vector<std::int32_t> users_; // by which expression last
};

} // namespace pgkm::generate
