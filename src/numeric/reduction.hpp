// reduction.hpp - the shape that the algorithms share: the generalised reduction of Ma and
// Agrawal, "A translation system for enabling data mining applications on GPUs" (ICS 2009),
//
//     for each row:  (i, v) = process(row);  R[i] = R[i] op v
//
// with an associative and commutative op. k-means is (nearest cluster, row) with integer sums,
// whose bits do not depend on order; here is the form for float64 sums, where order counts:
// the rows are cut into segments that depend on the shape alone, each segment fills a copy
// of R of its own, and the copies are combined in the segments' order. So the bits depend on
// how process() adds up one segment, never on the number of threads, nor on the pieces in which rows come.
//
// Where R is so large that few copies fit, it is cut into parts that different threads fill
// from the same rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "numeric/platform.hpp"

namespace pgkm {

// How a reduction is cut up: a pure function of its shape.
struct ReductionPlan {
    std::int64_t rows;     // of the problem
    std::int64_t segments; // >= 1
    std::int64_t parts;    // >= 1: of R
    std::int64_t values;   // float64 values in R
    std::int64_t block;    // rows that process() takes at a time

    // The first blocks % segments segments have one block more; a segment starts where a block does.
    std::int64_t first_row(std::int64_t segment) const
    {
        const std::int64_t blocks = (rows + block - 1) / block;
        return std::min(rows, (blocks / segments * segment + std::min(segment, blocks % segments)) * block);
    }
};

// Rows that sums of products take at a time: three rows of a tile and four of another stay in the first-level cache.
inline constexpr int block_rows = 384;

// Segments, and parts of R in each of them, that are worth being tasks of their own.
inline constexpr std::int64_t most_reduction_tasks = 64;

// In all copies of R: 64 MB.
inline constexpr std::int64_t most_reduction_values = 8 << 20;

// rows >= 1; blocks of `block` rows; R of `values` values, which max_parts threads may share.
inline ReductionPlan plan_reduction(std::int64_t rows, std::int64_t block, std::int64_t values, std::int64_t max_parts,
                                    std::int64_t most_values = most_reduction_values)
{
    const std::int64_t blocks = (rows + block - 1) / block;
    const std::int64_t copies = std::max<std::int64_t>(1, most_values / std::max<std::int64_t>(values, 1));
    const std::int64_t segments = std::min({most_reduction_tasks, copies, blocks});
    const std::int64_t parts = std::clamp<std::int64_t>((most_reduction_tasks + segments - 1) / segments, 1, max_parts);
    return {rows, segments, parts, values, block};
}

// One task of a reduction: these rows, that part of R.
struct ReductionTask {
    std::int64_t first;
    std::int64_t last; // one past
    std::int64_t part;
};

// Of sums whose rows may come in pieces: no segment has many blocks, so that a piece has work for all threads.
inline constexpr std::int64_t most_blocks_of_sums = 64;

struct SumPlan : ReductionPlan {
    std::int64_t copies; // of R, that are filled side by side

    std::int64_t memory() const { return (copies + 1) * values; } // float64 values

    // The one that a row belongs to.
    std::int64_t segment_of(std::int64_t row) const
    {
        const std::int64_t blocks = (rows + block - 1) / block, size = blocks / segments, longer = blocks % segments;
        const std::int64_t of_longer = longer * (size + 1), here = row / block;
        return here < of_longer ? here / (size + 1) : longer + (here - of_longer) / size;
    }
};

// As plan_reduction().
inline SumPlan plan_sums(std::int64_t rows, std::int64_t block, std::int64_t values, std::int64_t max_parts,
                         std::int64_t most_values = most_reduction_values)
{
    SumPlan plan = {plan_reduction(rows, block, values, max_parts, most_values), 0};
    plan.copies = plan.segments;
    plan.segments = std::max(plan.segments, (rows + block - 1) / block / most_blocks_of_sums);
    return plan;
}

// A reduction by addition.
class OrderedSums {
  public:
    // memory: plan.memory() zeros, which stay the caller's.
    OrderedSums(const SumPlan &plan, double *memory) : plan_(plan), memory_(memory) {}

    // Reduces rows [first, last), which follow those of the call before. They begin where a block does, and end so or
    // with the last row. run(tasks, body) calls body(task, worker) for each task from any threads and returns when all
    // are done; process(task, R, worker) reduces the rows of a task into its part of R.
    template <typename Run, typename Process>
    void add(std::int64_t first, std::int64_t last, Run &&run, Process &&process)
    {
        while (first < last) {
            const std::int64_t begin = plan_.segment_of(first);
            const std::int64_t open = begin / plan_.copies * plan_.copies; // the first of those filled side by side
            const std::int64_t close = std::min(open + plan_.copies, plan_.segments);
            const std::int64_t end = std::min(last, plan_.first_row(close));
            run((plan_.segment_of(end - 1) - begin + 1) * plan_.parts, [&](std::int64_t task, int worker) {
                const std::int64_t segment = begin + task / plan_.parts;
                process(ReductionTask{std::max(first, plan_.first_row(segment)),
                                      std::min(end, plan_.first_row(segment + 1)), task % plan_.parts},
                        memory_ + (1 + segment - open) * plan_.values, worker);
            });
            if (end == plan_.first_row(close))
                combine(close - open, run);
            first = end;
        }
    }

    // R, of all rows so far whose segments are complete.
    double *total() const { return memory_; }

  private:
    // Adds so many copies to the total, and clears them.
    template <typename Run>
    void combine(std::int64_t copies, Run &&run)
    {
        constexpr std::int64_t slice = 4096; // values that one thread combines at a time
        run((plan_.values + slice - 1) / slice, [&](std::int64_t task, int) {
            const std::int64_t begin = task * slice, end = std::min(plan_.values, begin + slice);
            for (std::int64_t copy = 1; copy <= copies; ++copy)
                for (std::int64_t i = begin; i < end; ++i) {
                    memory_[i] += memory_[copy * plan_.values + i];
                    memory_[copy * plan_.values + i] = 0.0;
                }
        });
    }

    const SumPlan plan_;
    double *const memory_; // the total, then the copies
};

} // namespace pgkm
