// reduce.cpp - a user's reduction: the rows cut into segments by the program's shape (numeric/reduction.hpp), each with
// a copy of R of its own; within it batches of rows. Exact sums take a pass before that, for the range of each value.
#include <algorithm>
#include <memory>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "cpu/operations.hpp"
#include "cpu/reduce/evaluator.hpp"
#include "numeric/contract.hpp"
#include "numeric/reduction.hpp"

namespace pgkm::cpu {
namespace {

// Threads beyond the copies of R share each copy.
ReductionPlan cut(const BatchPlan &plan, std::int64_t n, int threads)
{
    return plan_reduction(n, plan.batch_rows(), plan.words.count, threads);
}

struct Worker {
    Worker(Context &context, const BatchPlan &plan)
        : evaluator(context, plan), objects(context, plan.program, plan.words, plan.batch_rows()),
          largest(Buffer<double>::zeros(context.budget, at(plan.words.scales)))
    {
    }
    Evaluator evaluator;
    Accumulator objects;
    Buffer<double> largest;
};

template <typename T>
class Reducer {
  public:
    Reducer(Context &context, const T *rows, std::int32_t d, const BatchPlan &plan, const ReductionPlan &segments)
        : context_(context), pool_(context.pool), plan_(plan), rows_(rows), d_(d), segments_(segments)
    {
        for (int w = 0; w < pool_.size(); ++w)
            workers_.push_back(std::make_unique<Worker>(context_, plan));
    }

    // The greatest magnitudes of integer sums, for those of the copy.
    void measure(double *largest, PgkmReduced &out)
    {
        if (plan_.words.scales == 0)
            return;
        for (const auto &worker : workers_)
            worker->objects.measure(worker->largest.data());
        pool_.run(segments_.segments,
                  [&](std::int64_t segment, int worker) { run_segment(*workers_[at(worker)], segment); });
        check_rows(out);
        for (const auto &worker : workers_)
            for (std::size_t i = 0; i < worker->largest.size(); ++i)
                largest[i] = std::max(largest[i], worker->largest[i]);
    }

    // Each segment goes to the copy of its number.
    void fill(Copies &copies, PgkmReduced &out)
    {
        std::vector<double> scales;
        for (const int exponent : copies.exponents())
            scales.push_back(power_of_two(exponent));
        pool_.run(segments_.segments * segments_.parts, [&](std::int64_t task, int worker) {
            const std::int64_t segment = task / segments_.parts;
            workers_[at(worker)]->objects.open(copies.words(segment), task % segments_.parts, segments_.parts,
                                               scales.data());
            run_segment(*workers_[at(worker)], segment);
        });
        check_rows(out);
    }

  private:
    // Ends where a row fails, and where an earlier one has failed elsewhere.
    void run_segment(Worker &worker, std::int64_t segment)
    {
        const std::int64_t last = segments_.first_row(segment + 1);
        for (std::int64_t i = segments_.first_row(segment); i < last && i < failed_.load(std::memory_order_relaxed);
             i += segments_.block) {
            context_.poll();
            worker.evaluator.run(rows_ + i * d_, static_cast<int>(std::min(segments_.block, last - i)), d_,
                                 worker.objects);
            if (worker.objects.bad_row() == INT32_MAX)
                continue;
            const std::int64_t row = i + worker.objects.bad_row();
            std::int64_t known = failed_.load();
            while (row < known && !failed_.compare_exchange_weak(known, row)) {}
            return;
        }
    }

    // Names in `out` what fails in the first row that has.
    void check_rows(PgkmReduced &out)
    {
        const std::int64_t row = failed_.load();
        if (row == INT64_MAX)
            return;
        workers_[0]->evaluator.find_fault(rows_ + row * d_, d_, out);
        out.row = row;
        throw Error(PGKM_INVALID, "the reduction failed in a row");
    }

    Context &context_;
    ThreadPool &pool_;
    const BatchPlan &plan_;
    const T *const rows_;
    const std::int32_t d_;
    const ReductionPlan segments_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::atomic<std::int64_t> failed_{INT64_MAX}; // the first row that has
};

} // namespace

void reduce_nothing(const PgkmOpen &open, const PgkmReduction &reduction, PgkmReduced &out)
{
    Context context(open, 1);
    const Words words = words_of(reduction, Arrangement::cells);
    Copies(context, reduction, words, 1).finish(context.pool, out);
}

double reduce_bytes(const PgkmReduction &reduction, std::int32_t d, std::int64_t n, int threads)
{
    const BatchPlan plan(reduction, d);
    const std::int64_t copies = cut(plan, std::max<std::int64_t>(n, 1), threads).segments;
    return plan.table_bytes() + 8.0 * static_cast<double>(Copies::size(plan.words) * copies) +
           8.0 * static_cast<double>(plan.words.scales) * (threads + 2.0) +
           threads * (plan.thread_bytes() + 40.0 * plan.batch_rows());
}

void reduce(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction *reduction,
            PgkmReduced *reduced)
{
    if (data.points.weights != nullptr)
        throw Error(PGKM_INVALID, "a reduction takes unweighted rows only");
    data.context.report("reducing", 0, 0, 0.0);
    BatchPlan plan(*reduction, data.points.d);
    fill_tables(data.context, plan);
    for (std::int64_t p = 0; p < n_problems; ++p) {
        reduced[p].fault = PGKM_FAULT_NONE;
        reduced[p].row = -1;
        with_element(data.points, [&](auto element) {
            const auto *const rows =
                static_cast<const decltype(element) *>(data.points.values) + problems[p].first_row * data.points.d;
            const ReductionPlan segments = cut(plan, problems[p].n_rows, data.context.pool.size());
            Reducer reducer(data.context, rows, data.points.d, plan, segments);
            Copies copies(data.context, *reduction, plan.words, segments.segments);
            reducer.measure(copies.largest(0), reduced[p]);
            reducer.fill(copies, reduced[p]);
            copies.finish(data.context.pool, reduced[p]);
        });
    }
}

} // namespace pgkm::cpu
