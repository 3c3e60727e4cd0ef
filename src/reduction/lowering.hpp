// lowering.hpp - types the terms of a reduction and makes its program.
//
// A program knows numbers alone. So a term, once typed, is a shape and a function that makes the expression of one of
// its elements: `At` holds the expressions of that element's subscripts. Whoever wants all elements asks for the one at
// the index of a loop.
#pragma once

#include <deque>
#include <functional>

#include "reduction/program.hpp"
#include "reduction/text_error.hpp"
#include "reduction/words.hpp"

namespace pgkm::reduction {

enum class Kind { number, truth, either }; // either: a boolean column, which is 0 or 1 where a number stands

struct At {
    int n = 0;
    std::array<std::int32_t, 2> index = {-1, -1};
};

struct Typed {
    const PgkmTerm *term;
    Kind kind = Kind::number;
    int dimensions = 0; // any number: only up to two have extents
    std::array<std::int64_t, 2> extent = {1, 1};
    const Typed *whole = nullptr; // the first name or `vector` in it that is a vector or a matrix
    bool is_let = false;
    std::int64_t count = -1; // of what binds an index, and of the index: how far it goes
    // Of what binds an index: the index's expression; -1: not known yet, or that of the first line of a value.
    std::int32_t index = -1;
    bool first_line = false;
    std::function<std::int32_t(const At &)> make = {};
};

std::string shape_name(int dimensions);
// Of a vector or a matrix where a number is wanted.
[[noreturn]] void raise_shape(const Typed &typed);
// The same; 42804 for the other kind.
const Typed *as_number(const Typed *typed);

class Lowering {
  public:
    Lowering(const PgkmNames &names, Program &program, PgkmGiveUp give_up)
        : names_(names), program_(program), give_up_(give_up), lets_(at(names.n_lets)), meant_(at(names.n_lets))
    {
    }

    // With `shape` as pgkm_program_lower has it.
    void add_object(const PgkmObjectTree &tree, PgkmValueShape *shape);

  private:
    struct Scope {
        const char *name;
        const Typed *binder;
        const Scope *outer;
    };
    struct Rest { // what the items of a value have in common
        PgkmCombine combine;
        const PgkmTerm *key;   // or null
        PgkmValueShape *shape; // or null
    };

    // --- typing: lowering.cpp, names.cpp ---
    const Typed *type(const PgkmTerm &term, bool by_lines = false);
    const Typed *type_within(const char *index, const Typed &binder, const PgkmTerm &body, bool by_lines);
    const Typed *type_name(const PgkmTerm &term);
    const Typed *type_let(const PgkmTerm &mention, std::int32_t let);
    const Typed *type_subscript(const PgkmTerm &term);
    const Typed *type_operation(const PgkmTerm &term, const Word &word);
    const Typed *type_loop(const PgkmTerm &term, const Word &word);
    const Typed *type_vector(const PgkmTerm &term, bool by_lines);
    const Typed *type_length(const PgkmTerm &term, const Word &word);
    const Typed *constant(const PgkmTerm &term, Kind kind, double number);
    const Typed *base(const PgkmTerm &term); // of what has subscripts or lengths
    const Typed *scalar(const PgkmTerm &term);
    const Typed *number(const PgkmTerm &term);
    const Typed *truth(const PgkmTerm &term);
    Typed &add(const PgkmTerm &term, Kind kind = Kind::number);
    void take_shape(Typed &typed, const Typed &from);
    // A whole number made of parameters and numbers. Its expressions do not stay in the program.
    std::int64_t count_of(const PgkmTerm &term, std::int64_t least, std::int64_t most);

    // --- expressions ---
    std::int32_t make(const Typed &typed, const At &at = {});
    void check_inside(const Typed &whole, int dimension, const Typed &subscript, std::int32_t expression) const;
    std::int32_t enter_loop(std::int64_t count, bool of_item, std::int32_t place);
    void leave_loop(std::int32_t loop);
    void step(const PgkmTerm &term);
    void nest(const PgkmTerm &term);

    // --- objects: objects.cpp ---
    void add_items(const PgkmTerm &term, const Rest &rest);
    void add_lines(const PgkmTerm &term, std::int64_t count, const Rest &rest);

    const PgkmNames &names_;
    Program &program_;
    const PgkmGiveUp give_up_;
    const Scope *scope_ = nullptr;
    std::deque<Typed> of_lets_, of_item_; // terms that are typed: those of lets stay
    bool in_let_ = false;
    std::vector<const Typed *> lets_;      // as far as typed
    std::vector<bool> meant_;              // of each: it is being typed
    bool uneven_ = false;                  // the length of a line depends on which line it is
    std::vector<bool> running_, of_items_; // loops
    double steps_ = 1.0;                   // of all that run
    int made_ = 0, nested_ = 0;
};

} // namespace pgkm::reduction
