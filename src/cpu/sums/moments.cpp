// moments.cpp - moments(): sums and products of rows about a shift, cut into segments (numeric/reduction.hpp).
#include <algorithm>
#include <cmath>

#include "backend/weighted_moments.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/operations.hpp"
#include "cpu/sums/packed_block.hpp"
#include "cpu/kernels/product_kernels.hpp"
#include "numeric/reduction.hpp"

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

// d sums and the triangle. Each part of a large one packs its block anew; copies of it cost memory and time, too.
SumPlan plan_moments(std::int64_t n, std::int32_t d)
{
    constexpr std::int64_t features_per_part = 64, packed_features_per_part = 512;
    const std::int64_t values = d + triangle_size(d);
    return d >= packed_features
               ? plan_sums(n, block_rows, values, d / packed_features_per_part + 1, most_reduction_values / 4)
               : plan_sums(n, block_rows, values, std::max<std::int64_t>(1, d / features_per_part));
}

// float64 values that a thread needs for a block of rows.
std::size_t block_memory(std::int32_t d)
{
    return d >= packed_features ? packed_memory(d) : padded_features(d) * block_rows;
}

// The sums of one block of rows: of few features by the one kind of tiles, of many by the other.
template <typename T>
class BlockSums {
  public:
    BlockSums(InstructionSet set, std::int32_t d, const double *shift)
        : products_(product_kernels(set)), matrices_(matrix_kernels(set)), vectors_(vector_kernels(set)), d_(d),
          shift_(shift)
    {
    }

    // Adds features [first, last) of the triangle, which follows the d sums in `out`.
    void add(const T *x, std::int64_t rows, std::int32_t first, std::int32_t last, bool with_sums, double *memory,
             double *out) const
    {
        if (d_ >= packed_features)
            return add_packed(matrices_, vectors_, x, rows,
                              {d_, first, last, shift_, with_sums ? out : nullptr, out + d_}, memory);
        const int stride = padded_rows(rows);
        products_.turn(x, rows, d_, shift_, memory, stride);
        if (with_sums)
            products_.add_rows(memory, stride, d_, out);
        products_.add_products(memory, memory, stride, first, last, out + d_);
    }

  private:
    const ProductKernels &products_;
    const MatrixKernels &matrices_;
    const VectorKernels &vectors_;
    const std::int32_t d_;
    const double *const shift_;
};

// What weighted moments are the sums of.
constexpr PgkmMixture one_component = {1, PGKM_COVARIANCE_FULL, nullptr, nullptr, nullptr, nullptr, nullptr};

// Adds n rows, `first` of those of the plan and on.
template <typename T>
void add_rows(Context &context, ThreadPool &pool, const T *x, std::int64_t n, std::int64_t first, const SumPlan &plan,
              std::int32_t d, const double *shift, OrderedSums &sums)
{
    const std::size_t own = block_memory(d);
    const BlockSums<T> block(context.instruction_set, d, shift);
    auto memory = Buffer<double>::zeros(context.budget, own * pool.size());
    sums.add(
        first, first + n,
        [&](std::int64_t tasks, const auto &body) {
            pool.run(tasks, [&](std::int64_t task, int worker) {
                context.poll();
                body(task, worker);
            });
        },
        [&](const ReductionTask &task, double *into, int worker) {
            const std::int32_t begin = part_begin(task.part, plan.parts, d);
            const std::int32_t end = part_begin(task.part + 1, plan.parts, d);
            for (std::int64_t i = task.first; i < task.last; i += block_rows) {
                context.poll();
                block.add(x + (i - first) * d, std::min<std::int64_t>(block_rows, task.last - i), begin, end,
                          task.part == 0, memory.data() + own * worker, into);
            }
        });
}

void copy_moments(const Context &context, const double *total, std::int64_t n, std::int32_t d, PgkmMoments &out)
{
    out.mass = static_cast<double>(n);
    std::copy_n(total, d, out.sums);
    for (std::int64_t a = 0; a < d; ++a) {
        context.poll();
        std::copy_n(total + d + triangle_size(a), a + 1, out.cross + triangle_size(a));
    }
}

template <typename T>
void moments_of(Data &data, ThreadPool &pool, const PgkmProblem &problem, PgkmMoments &out)
{
    const std::int32_t d = data.points.d;
    const SumPlan plan = plan_moments(problem.n_rows, d);
    RowSums sums(data.context, plan);
    add_rows(data.context, pool, static_cast<const T *>(data.points.values) + problem.first_row * d, problem.n_rows, 0,
             plan, d, out.shift, sums.ordered);
    copy_moments(data.context, sums.ordered.total(), problem.n_rows, d, out);
}

PgkmProblem all_rows(const Data &data)
{
    PgkmProblem problem = {};
    problem.n_rows = data.points.n;
    return problem;
}

} // namespace

double moments_bytes(std::int64_t n, std::int32_t d, int threads, bool weighted)
{
    if (weighted) {
        const SumPlan plan =
            plan_sums(std::max<std::int64_t>(n, 1), block_rows, d + triangle_size(d) + 2, 1, most_mixture_values);
        const auto block = static_cast<double>((3 * padded_features(d) + 2) * block_rows);
        return 8.0 * (static_cast<double>(plan.memory()) + block * threads);
    }
    const SumPlan plan = plan_moments(std::max<std::int64_t>(n, 1), d);
    return 8.0 * (static_cast<double>(plan.memory()) + static_cast<double>(block_memory(d)) * threads);
}

void moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments)
{
    if (data.points.weights != nullptr)
        return weighted_moments(
            problems, n_problems, moments,
            [&](std::size_t n) { return Buffer<std::int32_t>::zeros(data.context.budget, n); },
            [&](const PgkmMixture *mixtures, PgkmMixtureSums *sums) {
                em_step(data, problems, n_problems, mixtures, sums);
            });
    const auto work = [&](std::int64_t p) {
        return static_cast<double>(problems[p].n_rows) * data.points.d * data.points.d;
    };
    data.context.report("summing", 0, 0, 0.0);
    for_problems(data, n_problems, work, [&](std::int64_t p, ThreadPool &pool) {
        with_element(data.points,
                     [&](auto element) { moments_of<decltype(element)>(data, pool, problems[p], moments[p]); });
    });
}

RowSums begin_moments(Context &context, std::int64_t n, std::int32_t d, bool weighted)
{
    return weighted ? begin_em_step(context, n, d, one_component, true) : RowSums(context, plan_moments(n, d));
}

void add_moments(Data &piece, std::int64_t first, const PgkmMoments &moments, RowSums &sums)
{
    const PgkmProblem problem = all_rows(piece);
    PgkmMoments view = moments;
    if (piece.points.weights != nullptr)
        return weighted_moments(
            &problem, 1, &view, [&](std::size_t n) { return Buffer<std::int32_t>::zeros(piece.context.budget, n); },
            [&](const PgkmMixture *mixtures, PgkmMixtureSums *) {
                add_em_step(piece, first, mixtures[0], true, sums);
            });
    with_element(piece.points, [&](auto element) {
        add_rows(piece.context, piece.context.pool, static_cast<const decltype(element) *>(piece.points.values),
                 piece.points.n, first, sums.plan, piece.points.d, moments.shift, sums.ordered);
    });
}

void finish_moments(Context &context, const RowSums &sums, std::int32_t d, bool weighted, PgkmMoments &moments)
{
    if (!weighted)
        return copy_moments(context, sums.ordered.total(), sums.plan.rows, d, moments);
    PgkmMixtureSums view = {0.0, &moments.mass, moments.sums, moments.cross, nullptr};
    finish_em_step(context, sums, d, one_component, view);
}

} // namespace pgkm::cpu
