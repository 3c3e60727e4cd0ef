// summarise.cpp - least and greatest values, means and variances, with the bits of the reference.
#include "cpu/operations.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "backend/peers.hpp"
#include "cpu/sums/summarise_kernels.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// Values per task: a millisecond or less, so that a cancel is seen in time.
constexpr std::int64_t task_values = 1 << 18;

// Features of which the statistics are made in that time.
constexpr std::size_t polled_features = 1 << 14;

// The part of one problem that a task works on.
struct Task {
    std::int64_t problem;
    std::int64_t first; // within the problem
    std::int64_t rows;
};

std::vector<Task> tasks_of(const PgkmProblem *problems, std::int64_t n_problems, std::int32_t d)
{
    const std::int64_t rows = std::clamp<std::int64_t>(task_values / d, 1, partial_sum_length);
    std::vector<Task> tasks;
    for (std::int64_t p = 0; p < n_problems; ++p)
        for (std::int64_t first = 0; first < problems[p].n_rows; first += rows)
            tasks.push_back({p, first, std::min(rows, problems[p].n_rows - first)});
    return tasks;
}

// The summaries of all problems while blocks of them are worked on by any thread. A thread
// works in arrays of its own and merges them under a lock, once per block; minima, maxima
// and integer sums do not care in which order.
template <typename T>
class Summariser {
  public:
    Summariser(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmSummary *summaries)
        : context_(data.context), points_(data.points), d_(data.points.d), problems_(problems), n_problems_(n_problems),
          summaries_(summaries), kernels_(summary_kernels(context_.instruction_set)),
          tasks_(tasks_of(problems, n_problems, data.points.d)), ranges_(context_.budget, 2 * d_ * context_.pool.size())
    {
    }

    void find_ranges()
    {
        for (std::int64_t p = 0; p < n_problems_; ++p) {
            reset(ranges_of(summaries_[p]));
            summaries_[p].max_weight = points_.weights == nullptr ? 1.0 : 0.0;
        }
        for_each_task([this](const Task &task, int worker) {
            double *const own = ranges_.data() + 2 * d_ * worker;
            const Ranges ranges = {own, own + d_};
            reset(ranges);
            const SummaryRows<T> block = rows_of(task);
            kernels_.widen(block, ranges);
            const double max_weight =
                block.weights == nullptr ? 1.0 : *std::max_element(block.weights, block.weights + block.n);
            merge(ranges, max_weight, summaries_[task.problem]);
        });
        for (std::int64_t p = 0; p < n_problems_; ++p)
            widen_over(problems_[p].peers, d_, summaries_[p].min, summaries_[p].max, &summaries_[p].max_weight);
    }

    // Sums of values and of squares about the middles of the ranges.
    const Buffer<Int128> &sum_moments()
    {
        const std::size_t all = d_ * n_problems_;
        scales_ = Buffer<double>(context_.budget, 3 * all);
        sums_ = Buffer<Int128>(context_.budget, 2 * all, 0);
        partial_ = Buffer<std::uint64_t>(context_.budget, 3 * d_ * context_.pool.size());
        for (std::int64_t p = 0; p < n_problems_; ++p)
            for (std::size_t f = 0; f < d_; ++f) {
                poll_at(f);
                const MomentScale scale = moment_scale(summaries_[p].min[f], summaries_[p].max[f]);
                double *const own = scales_.data() + 3 * at(p, 0) + f;
                own[0] = scale.middle;
                own[d_] = power_of_two(scale.value_exponent);
                own[2 * d_] = power_of_two(scale.square_exponent);
            }
        for_each_task([this](const Task &task, int worker) {
            std::uint64_t *const own = partial_.data() + 3 * d_ * worker;
            std::fill_n(own, 3 * d_, 0);
            const MomentSums partial = {own, own + d_, own + 2 * d_};
            const double *const scale = scales_.data() + 3 * at(task.problem, 0);
            kernels_.moments(rows_of(task), {scale, scale + d_, scale + 2 * d_}, partial);
            merge(partial, task.problem);
        });
        return sums_;
    }

    void find_moments()
    {
        sum_moments();
        for (std::int64_t p = 0; p < n_problems_; ++p) {
            add_over(problems_[p].peers, sums_.data() + 2 * at(p, 0), 2 * d_);
            for (std::size_t f = 0; f < d_; ++f) {
                poll_at(f);
                const Moments moments =
                    moments_of(moment_scale(summaries_[p].min[f], summaries_[p].max[f]), sums_[2 * at(p, f)],
                               sums_[2 * at(p, f) + 1], all_rows(problems_[p]));
                summaries_[p].mean[f] = moments.mean;
                summaries_[p].variance[f] = moments.variance;
            }
        }
    }

  private:
    static Ranges ranges_of(const PgkmSummary &summary) { return {summary.min, summary.max}; }
    std::size_t at(std::int64_t problem, std::size_t feature) const { return problem * d_ + feature; }

    void poll_at(std::size_t feature) const
    {
        if (feature % polled_features == 0)
            context_.poll();
    }

    void reset(const Ranges &ranges) const
    {
        std::fill_n(ranges.min, d_, std::numeric_limits<double>::infinity());
        std::fill_n(ranges.max, d_, -std::numeric_limits<double>::infinity());
    }

    SummaryRows<T> rows_of(const Task &task) const
    {
        const std::int64_t row = problems_[task.problem].first_row + task.first;
        return {static_cast<const T *>(points_.values) + row * points_.d,
                points_.weights == nullptr ? nullptr : points_.weights + row, task.rows, points_.d};
    }

    template <typename Body>
    void for_each_task(Body &&body)
    {
        context_.pool.run(static_cast<std::int64_t>(tasks_.size()), [&](std::int64_t task, int worker) {
            context_.poll();
            body(tasks_[task], worker);
        });
    }

    void merge(const Ranges &part, double max_weight, PgkmSummary &summary)
    {
        const std::lock_guard lock(merging_);
        for (std::size_t f = 0; f < d_; ++f) {
            summary.min[f] = std::min(summary.min[f], part.min[f]);
            summary.max[f] = std::max(summary.max[f], part.max[f]);
        }
        summary.max_weight = std::max(summary.max_weight, max_weight);
    }

    void merge(const MomentSums &part, std::int64_t problem)
    {
        const std::lock_guard lock(merging_);
        for (std::size_t f = 0; f < d_; ++f) {
            sums_[2 * at(problem, f)] += static_cast<std::int64_t>(part.value[f]);
            sums_[2 * at(problem, f) + 1] += join_limbs(part.square_hi[f], part.square_lo[f]);
        }
    }

    Context &context_;
    const PgkmPoints &points_;
    const std::size_t d_;
    const PgkmProblem *problems_;
    const std::int64_t n_problems_;
    PgkmSummary *summaries_;
    const SummaryKernels &kernels_;
    std::vector<Task> tasks_;
    std::mutex merging_;
    Buffer<double> ranges_;         // per worker: min, max
    Buffer<double> scales_;         // per problem: middle, value_scale, square_scale
    Buffer<Int128> sums_;           // problems x d x {value, square}
    Buffer<std::uint64_t> partial_; // per worker: value, square_hi, square_lo
};

} // namespace

void summarise(Data &data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
               PgkmSummary *summaries)
{
    if (data.points.element == PGKM_BIT)
        return summarise_bits(data, problems, n_problems, want_moments, summaries);
    with_element(data.points, [&](auto element) {
        Summariser<decltype(element)> summariser(data, problems, n_problems, summaries);
        summariser.find_ranges();
        if (want_moments != 0)
            summariser.find_moments();
    });
}

std::vector<Int128> moment_sums(Data &data, const PgkmProblem &problem, PgkmSummary ranges)
{
    std::vector<Int128> sums;
    with_element(data.points, [&](auto element) {
        Summariser<decltype(element)> summariser(data, &problem, 1, &ranges);
        const Buffer<Int128> &found = summariser.sum_moments();
        sums.assign(found.begin(), found.end());
    });
    return sums;
}

} // namespace pgkm::cpu
