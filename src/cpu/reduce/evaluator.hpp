// evaluator.hpp - the values of a reduction's expressions over batches of rows, and what failed in a row.
//
// Values that depend on a row are columns, one float64 for each row of the batch; all others are scalars. Each is
// computed where it is first wanted, and kept until something that it depends on changes.
//
// What fails gives an infinity or NaN, and so does all that depends on it: an operation that could lose it (a
// comparison, a division by infinity) gives NaN. So the values that reach an object are numbers exactly where nothing
// that they need has failed, and only these are looked at. A CASE computes both branches and keeps one.
#pragma once

#include <cmath>
#include <vector>

#include "cpu/reduce/batch_plan.hpp"
#include "cpu/reduce/cells.hpp"

namespace pgkm::cpu {

// A whole number in 0 .. end - 1.
inline bool is_place(double number, double end)
{
    return number >= 0.0 && number < end && number == std::floor(number);
}

// One thread's columns. Polls while it runs.
//
// Scalars that depend on one or two loops are kept for each index, if these are not too many. The floor or the
// remainder of an index, which stay the same for several of them, count as indexes of their own: what a line of a
// matrix shares is computed once a line.
class Evaluator {
  public:
    Evaluator(Context &context, const BatchPlan &plan);

    // The rows of one batch, n <= plan.batch_rows(), of d values each, into the objects.
    template <typename T>
    void run(const T *rows, int n, std::int32_t d, Accumulator &objects);

    // Fills out.fault, expression and number with what fails first in the order of evaluation (backend/reduction.h).
    template <typename T>
    void find_fault(const T *row, std::int32_t d, PgkmReduced &out);

    void fill_table(SumBlock &block);

  private:
    // Where the value of a scalar is kept: at first + the indexes by their strides.
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
    void set_index(std::int32_t loop, std::int64_t index);
    void work(std::int64_t operations);

    template <typename T>
    void load(const T *rows, int n, std::int32_t d);
    Operand operand(std::int32_t e);
    const double *column(std::int32_t e);
    const double *compute_column(std::int32_t e);
    void compute(std::int32_t e, double *to, int n);
    void element(std::int32_t e, double *to, int n);
    void over_loop(std::int32_t e, double *to, double *best, int n);
    const double *sum_block(std::size_t block);
    double *column_at(std::int64_t column) { return memory_.data() + column * stride_; }

    double first(std::int32_t e);
    bool fails(std::int32_t e, PgkmReduced &out);
    void trace(std::int32_t e, PgkmReduced &out);

    Context &context_;
    const BatchPlan &plan_;
    const PgkmReduction &program_;
    const ReduceKernels &kernels_;
    const std::int64_t stride_;
    Buffer<double> memory_;
    std::vector<const double *> at_;     // where an expression's column is
    std::vector<std::int64_t> panels_;   // of each sum block the panel that its columns hold, or -1
    std::vector<std::int32_t> block_of_; // of each expression, or -1
    int n_ = 0;                          // rows, rounded up as kernels take it
    std::int64_t left_ = 0;              // operations until the next poll

    std::vector<Place> places_; // of each expression
    std::vector<double> values_;
    std::vector<char> known_; // of each of these
    std::vector<std::int64_t> indexes_;
    std::vector<std::vector<Part>> parts_;              // of each loop
    std::vector<std::int32_t> loops_of_causes_;         // but for the row
    std::vector<std::vector<std::int32_t>> dependents_; // of each cause (an index, a part of one, the row): expressions
};

// Computes the tables of sum blocks.
void fill_tables(Context &context, BatchPlan &plan);

} // namespace pgkm::cpu
