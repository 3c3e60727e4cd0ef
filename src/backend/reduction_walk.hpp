// reduction_walk.hpp - values of a reduction's expressions, one at a time in the order of evaluation (reduction.h): of
// those without a row while it runs, and of a row that failed, to name what did.
#pragma once

#include <functional>
#include <vector>

#include "backend/reduction.h"
#include "backend/reduction_program.hpp"
#include "numeric/index.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// An operation of one to three numbers, PGKM_NEGATE to PGKM_CASE, squares aside; an infinity or NaN where it fails.
using OperationFunction = double(double, double, double);
OperationFunction *function_of(PgkmOperation operation);

// A value is computed where it is first wanted, and kept until something that it depends on changes.
//
// Values without a row that depend on one or two loops are kept for each index, if these are not too many. The floor or
// the remainder of an index, which stay the same for several of them, count as indexes of their own: what a line of a
// matrix shares is computed once a line.
class ReductionWalk {
  public:
    // The program stays the caller's. poll() is called now and then, and may throw.
    ReductionWalk(const PgkmReduction &program, std::vector<ExpressionFacts> facts, std::function<void()> poll);

    void set_index(std::int32_t loop, std::int64_t index);

    // Of an expression whose loops have an index; no number where it fails.
    const double &value(std::int32_t e)
    {
        const Place &place = places_[at(e)];
        const std::size_t here = place.first + at(place.strides[0] * indexes_[at(place.loops[0])] +
                                                  place.strides[1] * indexes_[at(place.loops[1])]);
        if (known_[here] == 0)
            find(e, here);
        return values_[here];
    }

    // Fills out.fault, expression and number with what fails first of all that the row reaches; PGKM_FAULT_NONE:
    // nothing.
    void find_fault(const double *row, PgkmReduced &out);

  protected:
    // What depends on the row is not known any more.
    void forget_row() { forget(static_cast<std::int32_t>(dependents_.size()) - 1); }
    bool knows(std::int32_t e) const { return known_[at(e)] != 0; }
    void learn(std::int32_t e) { known_[at(e)] = 1; }
    std::int64_t index_of(std::int32_t loop) const { return indexes_[at(loop)]; }
    void work(std::int64_t operations)
    {
        if ((left_ -= operations) < 0) {
            poll_();
            left_ = 1 << 18;
        }
    }

    const PgkmReduction &program_;
    const std::vector<ExpressionFacts> facts_;

  private:
    // Where the value of an expression is kept: at first + the indexes by their strides.
    struct Place {
        std::size_t first;
        std::int32_t loops[2] = {0, 0};
        std::int64_t strides[2] = {0, 0};
    };
    // A floor or remainder of the loop's index, and its place among dependents_.
    struct Part {
        std::int32_t expression, cause;
        double last;
    };

    bool keep_for_each_index(std::int32_t e);
    void add_causes(std::int32_t e, std::vector<std::vector<std::int32_t>> &causes);
    void forget(std::int32_t cause)
    {
        for (const std::int32_t e : dependents_[at(cause)])
            known_[at(e)] = 0;
    }
    void find(std::int32_t e, std::size_t here);
    double compute(std::int32_t e);
    double over_loop(std::int32_t e);
    bool find_subscript(std::int32_t e, int argument, std::int64_t &found);
    bool reach(const PgkmObject &object);
    double fail(PgkmFault fault, std::int32_t e, double number);

    std::function<void()> poll_;
    std::vector<Place> places_;
    std::vector<double> values_;
    std::vector<char> known_; // of each of these
    std::vector<std::int64_t> indexes_;
    std::vector<std::vector<Part>> parts_;              // of each loop
    std::vector<std::int32_t> loops_of_causes_;         // but for the row
    std::vector<std::vector<std::int32_t>> dependents_; // of each cause (an index, a part of one, the row): expressions
    const double *row_ = nullptr;
    PgkmReduced *fault_ = nullptr; // where the first one is noted, if it is looked for
    std::int64_t left_ = 0;
};

// Names in `out` what fails in row number `row`, and throws Error(PGKM_INVALID); PGKM_UNSUPPORTED where nothing does: a
// device rounds otherwise, and the CPU has to decide.
template <typename T>
[[noreturn]] void fail_in_row(const PgkmReduction &program, const T *values, std::int32_t d, std::int64_t row,
                              std::function<void()> poll, PgkmReduced &out);

} // namespace pgkm
