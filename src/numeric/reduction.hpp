// reduction.hpp - the shape that the algorithms share: the generalised reduction of Ma and
// Agrawal, "A translation system for enabling data mining applications on GPUs" (ICS 2009),
//
//     for each row:  (i, v) = process(row);  R[i] = R[i] op v
//
// with an associative and commutative op. k-means is (nearest cluster, row) with integer sums,
// whose bits do not depend on order; here is the form for float64 sums, where order counts:
// the rows are cut into segments that depend on the shape alone, each segment fills a copy
// of R of its own, and the copies are combined in the segments' order. So the bits depend on
// how process() adds up one segment, never on the number of threads.
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

struct Add {
    void operator()(double &total, double value) const { total += value; }
};

// Fills `copies` (plan.segments x plan.values, set to op's identity by the caller) and leaves R
// in its first plan.values. run(tasks, body) calls body(task, worker) for each task from any
// threads and returns when all are done; process(task, R, worker) reduces the rows of a task
// into its part of R.
template <typename Run, typename Process, typename Op = Add>
void generalised_reduction(const ReductionPlan &plan, double *copies, Run &&run, Process &&process, Op op = {})
{
    run(plan.segments * plan.parts, [&](std::int64_t task, int worker) {
        const std::int64_t segment = task / plan.parts;
        process(ReductionTask{plan.first_row(segment), plan.first_row(segment + 1), task % plan.parts},
                copies + segment * plan.values, worker);
    });
    if (plan.segments == 1)
        return;
    constexpr std::int64_t slice = 4096; // values that one thread combines at a time
    run((plan.values + slice - 1) / slice, [&](std::int64_t task, int) {
        const std::int64_t end = std::min(plan.values, (task + 1) * slice);
        for (std::int64_t segment = 1; segment < plan.segments; ++segment)
            for (std::int64_t i = task * slice; i < end; ++i)
                op(copies[i], copies[segment * plan.values + i]);
    });
}

} // namespace pgkm
