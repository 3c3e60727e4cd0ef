// reduction_program.hpp - what must hold of a user's reduction before a backend gets it, and what is known of it before
// it runs: what depends on what, how much work it is.
#pragma once

#include <vector>

#include "backend/reduction.h"
#include "numeric/platform.hpp"

namespace pgkm {

// How many of a[] an operation has, those of a loop and the subscripts included.
int arguments_of(PgkmOperation operation);

// An operation of one to three numbers, PGKM_NEGATE to PGKM_CASE, squares aside; an infinity or NaN where it fails.
using OperationFunction = double(double, double, double);
OperationFunction *function_of(PgkmOperation operation);

// PGKM_SUM to PGKM_COUNT.
inline bool goes_over_loop(PgkmOperation operation)
{
    return operation >= PGKM_SUM && operation <= PGKM_COUNT;
}

// Whether the expression is a power by the constant 2.
bool is_square(const PgkmReduction &program, const PgkmExpression &expression);

// A sum of it takes an fma() each: a product or a square. Its factors.
struct Factors {
    std::int32_t x = -1, y = -1;
    explicit operator bool() const { return x >= 0; }
};
Factors factors_of(const PgkmReduction &program, const PgkmExpression &expression);

// 1 for the loop -1.
inline std::int64_t elements_of(const PgkmReduction &program, std::int32_t loop)
{
    return loop < 0 ? 1 : program.loops[loop];
}
std::int64_t width_of(const PgkmReduction &program, const PgkmObject &object);

// Values in all objects, and cells.
std::int64_t values_in(const PgkmReduction &program);
std::int64_t cells_in(const PgkmReduction &program);

// What is known of an expression.
struct ExpressionFacts {
    bool of_row = false;             // its value depends on the row
    std::vector<std::int32_t> loops; // on whose index it depends, ascending
    std::vector<std::int32_t> held;  // loops within it, ascending
    std::int32_t depth = 0;          // of what it needs
    double cost = 0.0;               // plain operations to evaluate it and all that it needs
};
std::vector<ExpressionFacts> facts_of(const PgkmReduction &program);

// Throws Error for a program that does not obey backend/reduction.h with rows of d values: PGKM_INVALID, or PGKM_LIMIT
// where it is too large.
void check_program(const PgkmReduction &program, std::int32_t d);

// Plain operations: for each row, and once. Of a program that was checked; each expression counts once for the indexes
// that it depends on.
struct ProgramWork {
    double row;
    double once;
};
ProgramWork program_work(const PgkmReduction &program);

} // namespace pgkm
