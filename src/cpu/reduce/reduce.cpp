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
    Reducer(Context &context, const T *rows, std::int32_t d, const BatchProgram &program, const Layout &layout,
            const ReductionPlan &plan)
        : context_(context), pool_(context.pool), program_(program), layout_(layout), rows_(rows), d_(d), plan_(plan)
    {
        for (int w = 0; w < pool_.size(); ++w)
            workers_.push_back(std::make_unique<Worker>(context_, program, layout));
        tables_ = workers_[0]->evaluator.make_tables();
        for (const auto &worker : workers_)
            worker->evaluator.use(tables_);
    }

    void run(PgkmReduced &out)
    {
        Copies copies(context_, pool_, layout_, plan_.segments);
        measure(copies[0], out);
        fill(copies, 0, out);
        copies.finish(pool_, out);
    }

    // The greatest magnitudes of exact sums, for those of the copy.
    void measure(const Copy &copy, PgkmReduced &out)
    {
        if (!layout_.exact)
            return;
        for (const auto &worker : workers_)
            worker->objects.measure();
        pool_.run(plan_.segments,
                  [&](std::int64_t segment, int worker) { run_segment(*workers_[at(worker)], segment); });
        check_rows(out);
        for (const auto &worker : workers_)
            for (std::int64_t c = 0; c < layout_.scaled(); ++c)
                copy.largest[c] = std::max(copy.largest[c], worker->objects.largest()[at(c)]);
    }

    // The first segment goes to copy number `first`, the next one to the next.
    void fill(const Copies &copies, std::int64_t first, PgkmReduced &out)
    {
        Buffer<double> scales = copies.largest();
        for (double &scale : scales)
            scale = power_of_two(scale_exponent(scale));
        pool_.run(plan_.segments * plan_.parts, [&](std::int64_t task, int worker) {
            const std::int64_t segment = task / plan_.parts;
            workers_[at(worker)]->objects.open(copies[first + segment], task % plan_.parts, plan_.parts, scales);
            run_segment(*workers_[at(worker)], segment);
        });
        check_rows(out);
    }

  private:
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

static_assert(most_reduction_tasks <= PGKM_MOST_SEGMENTS);

bool is_ordered(const PgkmReduction &reduction)
{
    const auto *const items = reduction.items;
    return reduction.exact == 0 && std::any_of(items, items + reduction.n_items,
                                               [](const PgkmItem &item) { return item.combine == PGKM_COMBINE_SUM; });
}

ReductionPlan segments_of(const PgkmReduction &reduction, std::int32_t d, std::int64_t n)
{
    return plan_of(Layout(reduction), BatchProgram(reduction, d), n, 1);
}

std::int64_t copies_bytes(const PgkmReduction &reduction, std::int64_t count)
{
    return Copies::bytes(Layout(reduction), count);
}

void reduce_into(const PgkmOpen &open, const PgkmPoints &points, const PgkmReduction &reduction,
                 const PgkmCopies &shared, std::int64_t copy, CopyStep step)
{
    Context context(open, 1);
    const BatchProgram program(reduction, points.d);
    const Layout layout(reduction);
    const ReductionPlan plan = {points.n, 1, 1, layout.copy_size(), program.batch_rows()};
    Copies copies(context, layout, shared);
    PgkmReduced fault = {};
    with_element(points, [&](auto element) {
        const auto *const rows = static_cast<const decltype(element) *>(points.values);
        Reducer reducer(context, rows, points.d, program, layout, plan);
        if (step == CopyStep::measure) {
            std::fill_n(copies[copy].largest, layout.scaled(), 0.0);
            reducer.measure(copies[copy], fault);
        } else {
            copies.clear(context.pool, copy, copy + 1);
            reducer.fill(copies, copy, fault);
        }
    });
}

void finish_copies(const PgkmOpen &open, const PgkmReduction &reduction, const PgkmCopies &shared, PgkmReduced &out)
{
    Context context(open, open.threads);
    const Layout layout(reduction);
    Copies(context, layout, shared).finish(context.pool, out);
}

double reduce_bytes(const PgkmReduction &reduction, std::int32_t d, std::int64_t n, int threads)
{
    const BatchProgram program(reduction, d);
    const Layout layout(reduction);
    const ReductionPlan plan = plan_of(layout, program, std::max<std::int64_t>(n, 1), threads);
    double tables = 0.0;
    for (const SumBlock &block : program.sum_blocks)
        tables += 8.0 * static_cast<double>(reduction.loops[block.inner]) *
                  static_cast<double>(reduction.loops[block.outer] + sum_panel);
    return tables + static_cast<double>(Copies::bytes(layout, plan.segments)) +
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
            const auto *const rows =
                static_cast<const decltype(element) *>(data.points.values) + problems[p].first_row * data.points.d;
            Reducer(data.context, rows, data.points.d, program, layout,
                    plan_of(layout, program, problems[p].n_rows, data.context.pool.size()))
                .run(reduced[p]);
        });
    }
}

} // namespace pgkm::cpu
