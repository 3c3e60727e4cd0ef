// expressions.hpp (generate) - expressions as text: each is computed once in the scope where it is first wanted, or
// outside of the loops whose index it does not need.
//
// An infinity or NaN goes through most operations. Where an operation would lose it, and where a value changes R, the
// text ends the function of the row: it returns false.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend/generate/program.hpp"
#include "backend/generate/text.hpp"

namespace pgkm::generate {

// A parameter: an array of rows x columns values, which begins at `first` of PgkmReduction::parameters.
struct Input {
    std::string name;
    std::int64_t first, rows, columns;
    std::int64_t place; // its first word in shared memory; -1: it stays in device memory

    std::int64_t values() const { return rows * columns; }
};

class Expressions {
  public:
    // The text is that of a function with `row`, the inputs by their names and `stop`.
    Expressions(const Program &program, const std::vector<Input> &inputs, bool float32, Text &text)
        : program_(program), inputs_(inputs), float32_(float32), text_(text),
          known_(static_cast<std::size_t>(program.size())), is_open_(static_cast<std::size_t>(program.source().n_loops))
    {
    }

    // A float64, an int (of a whole number), a truth value.
    std::string number(std::int32_t e);
    std::string whole(std::int32_t e) { return value(e); }
    std::string truth(std::int32_t e) { return "(" + finite_number(e) + " != 0.0)"; }
    // As number(), or with an end of the function where it is none.
    std::string finite_number(std::int32_t e);
    // A whole number in 0 .. end - 1 by this name, or an end of the function.
    void place(const std::string &name, const char *type, std::int32_t e, std::int64_t end);
    // A name of e's value that is there without being computed.
    void give(std::int32_t e, const std::string &name) { set(e, name, true); }
    // total += e, as a statement; of a product by one fma().
    void add_to(const std::string &total, std::int32_t e);
    // Computes what e needs and depends on the indexes of open loops alone, before another loop is opened.
    void hoist(std::int32_t e);

    // A scope within; what is computed in it goes when it is closed.
    void open(const std::string &head, std::int32_t loop = -1);
    void close();
    // A loop whose body costs so many operations.
    void open_loop(std::int32_t loop, double cost);

  private:
    struct Known {
        std::string text; // empty: not computed
        bool finite = false;
    };
    struct Undo {
        std::int32_t e;
        Known before;
    };

    Known &known(std::int32_t e) { return known_[static_cast<std::size_t>(e)]; }
    void set(std::int32_t e, std::string text, bool finite);
    const std::string &value(std::int32_t e);
    void require_finite(std::int32_t e);
    void compute(std::int32_t e);
    void define(std::int32_t e, const std::string &text, bool finite);
    void define_case(std::int32_t e);
    void define_loop(std::int32_t e);
    std::string whole_formula(std::int32_t e);
    std::string subscript(std::int32_t e, int argument);
    std::string element(std::int32_t e);

    const Program &program_;
    const std::vector<Input> &inputs_;
    bool float32_;
    Text &text_;
    std::vector<Known> known_;
    std::vector<Undo> undo_;
    std::vector<std::pair<std::size_t, std::int32_t>> scopes_; // that are open: where undo_ begins, the loop or -1
    std::vector<bool> is_open_;                                // of each loop
};

} // namespace pgkm::generate
