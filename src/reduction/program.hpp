// program.hpp - a program of scalar expressions (backend/reduction.h) that grows.
//
// Equal expressions are one. What has constant arguments becomes a constant, unless it fails: a branch that no row
// takes may fail.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "numeric/index.hpp"
#include "reduction/tree.h"

namespace pgkm::reduction {

class Program {
  public:
    // Each returns the expression's number; 54000 for one too many. `place` is that of the first of equal ones.
    std::int32_t constant(std::int32_t place, double number);
    std::int32_t operation(PgkmOperation operation, std::int32_t place, std::int32_t a, std::int32_t b = -1,
                           std::int32_t c = -1);
    std::int32_t over_loop(PgkmOperation operation, std::int32_t place, std::int32_t loop, std::int32_t body);
    std::int32_t index(std::int32_t place, std::int32_t loop) { return over_loop(PGKM_INDEX, place, loop, -1); }
    // An element of a column, or of a parameter, whose values are copied.
    std::int32_t element(std::int32_t place, const PgkmNamed &name, const std::array<std::int32_t, 2> &subscripts);

    std::int32_t size() const { return static_cast<std::int32_t>(expressions_.size()); }
    const PgkmExpression &operator[](std::int32_t expression) const { return expressions_[at(expression)]; }
    // Forgets the expressions from there on.
    void cut(std::int32_t size);

    bool folds_parameters = false; // elements of parameters are constants
    std::vector<std::int64_t> loops;
    std::vector<PgkmObject> objects;
    void add_item(const PgkmItem &item, std::int32_t place); // to the last object

    PgkmReduction view(std::int32_t exact) const;

  private:
    using Key = std::array<std::int64_t, 9>; // an expression without its place

    static Key key_of(const PgkmExpression &expression);
    std::int32_t add(const PgkmExpression &expression);
    bool is_constant(std::int32_t expression) const;
    std::int64_t place_in(const PgkmNamed &name, const std::array<std::int32_t, 2> &subscripts) const;

    std::map<const PgkmNamed *, std::int64_t> used_; // parameters, and where their values begin
    std::vector<double> parameters_;
    std::vector<PgkmExpression> expressions_;
    std::map<Key, std::int32_t> numbers_;
    std::vector<PgkmItem> items_;
};

} // namespace pgkm::reduction
