// reduce.cpp - a user's reduction: the rows cut into segments by the program's shape (numeric/reduction.hpp), each with
// a copy of R of its own; within it batches of rows. Exact sums take a pass before that, for the range of each value.
#include "cpu/reduce/reduce.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "backend/reduction_walk.hpp"
#include "cpu/operations.hpp"
#include "cpu/reduce/cells.hpp"
#include "cpu/reduce/evaluator.hpp"
#include "cpu/reduce/program.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"
#include "numeric/reduction.hpp"

namespace pgkm::cpu {
namespace {

// Threads beyond the copies of R share each copy.
ReductionPlan plan_of(const Layout &layout, const BatchProgram &program, std::int64_t n, int threads)
{
    return plan_reduction(n, program.batch_rows(), layout.copy_size(), threads);
}

struct Worker {
    Worker(Context &context, const BatchProgram &program, const Layout &layout)
        : evaluator(context, program), objects(context, layout, program.batch_rows())
    {
    }
    Evaluator evaluator;
    Accumulator objects;
};

template <typename T>
class Reducer {
  public:
    Reducer(Data &data, const PgkmProblem &problem, const BatchProgram &program, const Layout &layout)
        : context_(data.context), pool_(data.context.pool), program_(program), layout_(layout),
          rows_(static_cast<const T *>(data.points.values) + problem.first_row * data.points.d), d_(data.points.d),
          plan_(plan_of(layout, program, problem.n_rows, pool_.size()))
    {
        for (int w = 0; w < pool_.size(); ++w)
            workers_.push_back(std::make_unique<Worker>(context_, program, layout));
        tables_ = workers_[0]->evaluator.make_tables();
        for (const auto &worker : workers_)
            worker->evaluator.use(tables_);
    }

    void run(PgkmReduced &out)
    {
        auto largest = Buffer<double>::zeros(context_.budget, at(layout_.scaled()));
        Buffer<double> scales(context_.budget, at(layout_.scaled()));
        if (layout_.exact)
            measure(largest, out);
        for (std::size_t c = 0; c < scales.size(); ++c)
            scales[c] = power_of_two(scale_exponent(largest[c]));
        Copies copies(context_, pool_, layout_, plan_.segments);
        pool_.run(plan_.segments * plan_.parts, [&](std::int64_t task, int worker) {
            const std::int64_t segment = task / plan_.parts;
            workers_[at(worker)]->objects.open(copies[segment], task % plan_.parts, plan_.parts, scales);
            run_segment(*workers_[at(worker)], segment);
        });
        check_rows(out);
        copies.finish(pool_, largest, out);
    }

  private:
    // The greatest magnitude of each column.
    void measure(Buffer<double> &largest, PgkmReduced &out)
    {
        for (const auto &worker : workers_)
            worker->objects.measure();
        pool_.run(plan_.segments,
                  [&](std::int64_t segment, int worker) { run_segment(*workers_[at(worker)], segment); });
        check_rows(out);
        for (const auto &worker : workers_)
            for (std::size_t c = 0; c < largest.size(); ++c)
                largest[c] = std::max(largest[c], worker->objects.largest()[c]);
    }

    // Ends where a row fails, and where an earlier one has failed elsewhere.
    void run_segment(Worker &worker, std::int64_t segment)
    {
        const std::int64_t last = plan_.first_row(segment + 1);
        for (std::int64_t i = plan_.first_row(segment); i < last && i < failed_.load(std::memory_order_relaxed);
             i += plan_.block) {
            context_.poll();
            worker.objects.begin_batch();
            worker.evaluator.run(rows_ + i * d_, static_cast<int>(std::min(plan_.block, last - i)), d_, worker.objects);
            if (worker.objects.bad_row() != INT32_MAX)
                return lower(failed_, i + worker.objects.bad_row());
        }
    }

    // Throws where a row has failed: walks it once more, to name what did.
    void check_rows(PgkmReduced &out) const
    {
        const std::int64_t row = failed_.load();
        if (row == INT64_MAX)
            return;
        const std::vector<double> values(rows_ + row * d_, rows_ + (row + 1) * d_);
        const ReductionFault fault =
            ReductionWalk(program_.reduction, [&] { context_.poll(); }).fault_of(values.data());
        if (fault.fault == PGKM_FAULT_NONE)
            throw Error(PGKM_INTERNAL, "a reduction failed for no reason");
        out.fault = fault.fault;
        out.row = row;
        out.expression = fault.expression;
        out.number = fault.number;
        throw Error(PGKM_INVALID, "a reduction failed in a row");
    }

    Context &context_;
    ThreadPool &pool_;
    const BatchProgram &program_;
    const Layout &layout_;
    const T *const rows_;
    const std::int32_t d_;
    const ReductionPlan plan_;
    std::vector<std::unique_ptr<Worker>> workers_;
    Tables tables_;
    std::atomic<std::int64_t> failed_{INT64_MAX}; // the first row that has
};

} // namespace

double reduce_bytes(const PgkmReduction &reduction, std::int32_t d, std::int64_t n, int threads)
{
    const BatchProgram program(reduction, d);
    const Layout layout(reduction);
    const ReductionPlan plan = plan_of(layout, program, std::max<std::int64_t>(n, 1), threads);
    double tables = 0.0;
    for (const SumBlock &block : program.sum_blocks)
        tables += 8.0 * static_cast<double>(reduction.loops[block.inner]) *
                  static_cast<double>(reduction.loops[block.outer] + sum_panel);
    return tables + 8.0 * static_cast<double>(plan.segments) * static_cast<double>(layout.copy_size()) +
           8.0 * static_cast<double>(layout.scaled()) * (threads + 2.0) +
           threads * (Evaluator::bytes(program) + 24.0 * program.batch_rows());
}

void reduce(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction *reduction,
            PgkmReduced *reduced)
{
    if (data.points.weights != nullptr)
        throw Error(PGKM_INVALID, "a reduction takes unweighted rows only");
    data.context.report("reducing", 0, 0, 0.0);
    const BatchProgram program(*reduction, data.points.d);
    const Layout layout(*reduction);
    for (std::int64_t p = 0; p < n_problems; ++p) {
        reduced[p].fault = PGKM_FAULT_NONE;
        reduced[p].row = -1;
        with_element(data.points, [&](auto element) {
            Reducer<decltype(element)>(data, problems[p], program, layout).run(reduced[p]);
        });
    }
}

} // namespace pgkm::cpu
