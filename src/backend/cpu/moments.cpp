#include "backend/cpu/moments.hpp"

#include <algorithm>
#include <cmath>

#include "backend/cpu/for_problems.hpp"
#include "backend/cpu/product_kernels.hpp"
#include "engine/reduction.hpp"

namespace pgkm::cpu {
namespace {

// Where part `part` of `parts` of a triangle of d rows begins: parts of about the same area, whole
// tiles each.
std::int32_t part_begin(std::int64_t part, std::int64_t parts, std::int32_t d)
{
    if (part == parts)
        return d;
    const double share = std::sqrt(static_cast<double>(part) / static_cast<double>(parts));
    return static_cast<std::int32_t>(share * d / 4.0) * 4;
}

template <typename T>
void moments_of(Data &data, ThreadPool &pool, const PgkmProblem &problem, PgkmMoments &out)
{
    constexpr std::int64_t features_per_part = 64;
    Context &context = data.context;
    const std::int32_t d = data.points.d;
    const T *const x = static_cast<const T *>(data.points.values) + problem.first_row * d;
    const std::int64_t values = d + triangle(d);
    const ReductionPlan plan =
        plan_reduction(problem.n_rows, block_rows, values, std::max<std::int64_t>(1, d / features_per_part));
    const ProductKernels &kernels = product_kernels(context.strategy.instruction_set);
    const std::size_t block_size = static_cast<std::size_t>(padded_features(d)) * block_rows;
    Buffer<double> copies(context.budget, static_cast<std::size_t>(plan.segments * values), 0.0);
    Buffer<double> blocks(context.budget, block_size * static_cast<std::size_t>(pool.size()), 0.0);
    generalised_reduction(
        plan, copies.data(), [&](std::int64_t tasks, const auto &body) { pool.run(tasks, body); },
        [&](const ReductionTask &task, double *sums, int worker) {
            double *const block = blocks.data() + block_size * static_cast<std::size_t>(worker);
            const std::int32_t first = part_begin(task.part, plan.parts, d);
            const std::int32_t last = part_begin(task.part + 1, plan.parts, d);
            for (std::int64_t i = task.first; i < task.last; i += block_rows) {
                context.poll();
                const std::int64_t rows = std::min<std::int64_t>(block_rows, task.last - i);
                const int stride = padded_rows(rows);
                turn(kernels, x + i * d, rows, d, out.shift, block, stride);
                if (task.part == 0)
                    kernels.add_rows(block, stride, d, sums);
                kernels.add_products(block, block, stride, first, last, sums + d);
            }
        });
    std::copy_n(copies.data(), d, out.sums);
    std::copy_n(copies.data() + d, triangle(d), out.cross);
}

} // namespace

void moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments)
{
    if (data.points.weights != nullptr)
        throw Error(PGKM_INVALID, "moments are taken of unweighted rows only");
    const auto work = [&](std::int64_t p) {
        return static_cast<double>(problems[p].n_rows) * data.points.d * data.points.d;
    };
    data.context.report("summing", 0, 0, 0.0);
    for_problems(data, n_problems, work, [&](std::int64_t p, ThreadPool &pool) {
        with_element(data.points,
                     [&](auto element) { moments_of<decltype(element)>(data, pool, problems[p], moments[p]); });
    });
}

} // namespace pgkm::cpu
