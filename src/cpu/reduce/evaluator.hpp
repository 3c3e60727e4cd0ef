// evaluator.hpp - runs the steps of a reduction on batches of rows.
#pragma once

#include <vector>

#include "cpu/context.hpp"
#include "cpu/reduce/cells.hpp"
#include "cpu/reduce/program.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// What is computed once for all batches.
struct Tables {
    std::vector<double> scalars;
    std::vector<Buffer<double>> look_ups;
    std::vector<Buffer<double>> sum_blocks; // of each, by panels of sum_panel indexes j: inner x sum_panel
};

// One thread's columns. Polls while it runs.
class Evaluator {
  public:
    Evaluator(Context &context, const BatchProgram &program);

    // Computes and takes over what does not depend on rows; or takes over what another one has computed.
    Tables make_tables();
    void use(const Tables &tables);

    // The rows of one batch, n <= program.batch_rows(), of d values each, into the objects.
    template <typename T>
    void run(const T *rows, int n, std::int32_t d, Accumulator &objects);

    // Bytes of one.
    static double bytes(const BatchProgram &program);

  private:
    void run_block(std::int32_t block);
    void run_step(const Step &step);
    void run_loop(const Step &step);
    void run_elements(const Step &step);
    void store(const Step &step);
    void gather(const Step &step);
    void select(const Step &step);
    void each(const Step &step);
    void sum_block(const Step &step);
    void add_scalar(const Step &step);
    void add_other(const Step &step);
    double scalar_of(const Step &step) const;
    double looked_up(const Step &step) const;
    Buffer<double> table_of(const LookUp &table);
    double parameter_of(const Step &step) const;

    void set_index(std::int32_t loop, std::int64_t index)
    {
        scalars_[static_cast<std::size_t>(program_.index_of[static_cast<std::size_t>(loop)])] =
            static_cast<double>(index);
        work(1);
    }
    // Counts operations, and looks at the cancel flag now and then.
    void work(int operations)
    {
        if ((left_ -= operations) < 0) {
            context_.poll();
            left_ = 1 << 18;
        }
    }

    double number(Operand operand) const { return scalars_[static_cast<std::size_t>(operand.place)]; }
    double &number(Operand operand) { return scalars_[static_cast<std::size_t>(operand.place)]; }
    double *own(std::int32_t column) { return columns_ + column * stride_; }
    double *to(const Step &step) { return own(step.to.place); }
    // Where the values are: of a column, or of a scalar.
    const double *from(Operand operand) const
    {
        const auto place = static_cast<std::size_t>(operand.place);
        return operand.column ? at_[place] : &scalars_[place];
    }
    static int broadcast(const Step &step)
    {
        return !step.a.column ? broadcast_first : !step.b.column ? broadcast_second : broadcast_none;
    }

    Context &context_;
    const BatchProgram &program_;
    const BatchKernels &kernels_;
    const std::int64_t stride_;
    Buffer<double> memory_;
    double *packed_;  // columns of the rows
    double *columns_; // of steps
    double *wide_;
    double *nothing_;                             // a column of NaN
    std::vector<double *> wides_;                 // of each wide column its first
    std::vector<const double *> at_;              // where a column is: its own, or that which a step has selected
    std::vector<double> scalars_, best_, poison_; // the last two: of loops over scalars
    std::vector<std::int64_t> panels_;            // of each sum block the panel that its columns hold, or -1
    const Tables *tables_ = nullptr;
    Accumulator *objects_ = nullptr;
    int rows_ = 0; // of the batch
    int n_ = 0;    // rounded up, as kernels take it
    int left_ = 0; // operations until the next poll
};

} // namespace pgkm::cpu
