// reduction_walk.hpp - a reduction's program for one row, an expression at a time in the order of evaluation
// (reduction.h). A backend that works on many rows at once finds with it what failed in a row.
#pragma once

#include <functional>
#include <vector>

#include "backend/reduction.h"
#include "numeric/platform.hpp"

namespace pgkm {

// How many of a[] an operation has, those of a loop and the subscripts included.
int arguments_of(PgkmOperation operation);

// PGKM_SUM to PGKM_COUNT.
inline bool goes_over_loop(PgkmOperation operation)
{
    return operation >= PGKM_SUM && operation <= PGKM_COUNT;
}

// A function that takes some ten times as long as a product; a power may be a square.
inline bool is_slow(PgkmOperation operation)
{
    return operation == PGKM_EXP || operation == PGKM_LN || (operation >= PGKM_SIN && operation <= PGKM_TANH) ||
           operation == PGKM_MODULO || operation == PGKM_ATAN2;
}

// An operation of one to three numbers, PGKM_NEGATE to PGKM_CASE, squares aside; an infinity or NaN where it fails.
double operation_value(PgkmOperation operation, double a, double b, double c);

// Whether the expression is a power by the constant 2.
bool is_square(const PgkmReduction &program, const PgkmExpression &expression);

// 1 for the loop -1.
inline std::int64_t elements_of(const PgkmReduction &program, std::int32_t loop)
{
    return loop < 0 ? 1 : program.loops[loop];
}
std::int64_t width_of(const PgkmReduction &program, const PgkmObject &object);

// For each expression the loops on whose index its value depends, ascending.
std::vector<std::vector<std::int32_t>> free_loops(const PgkmReduction &program);

struct ReductionFault {
    PgkmFault fault = PGKM_FAULT_NONE;
    std::int32_t expression = -1;
    double number = 0.0;
};

class ReductionWalk {
  public:
    // The program stays the caller's. poll() is called now and then, and may throw.
    ReductionWalk(const PgkmReduction &program, std::function<void()> poll);

    // Evaluates all that the row reaches; what failed first.
    ReductionFault fault_of(const double *row);

    // The same bit by bit: a row, which stays the caller's, the index of a loop, and a value, which throws a
    // ReductionFault.
    void begin(const double *row);
    void set_index(std::int32_t loop, std::int64_t index);
    double value(std::int32_t expression);
    std::int64_t cell_of(const PgkmObject &object);

  private:
    double compute(std::int32_t expression);
    double over_loop(std::int32_t expression);
    std::int64_t subscript(std::int32_t expression, int argument);
    void step();
    void object(const PgkmObject &object);

    const PgkmReduction &program_;
    std::function<void()> poll_;
    std::vector<std::vector<std::int32_t>> dependent_; // of each loop: the expressions
    std::vector<double> values_;                       // of expressions, as far as known
    std::vector<char> known_;
    std::vector<std::int64_t> indexes_; // of the loops
    const double *row_ = nullptr;
    std::int64_t steps_ = 0;
};

} // namespace pgkm
