// batches.cpp - passes over the batches of each group.
#include "engine/kmeans/batches.hpp"

#include <algorithm>

#include "backend/update.hpp"
#include "numeric/contract.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

template <typename T>
class BatchFit {
  public:
    BatchFit(Fits<T> &fits, std::size_t problem)
        : fits_(fits), options_(fits.task.options), d_(fits.d()), problem_(fits.problems[problem]),
          centroids_(fits.centroids[problem]), means_(at(std::int64_t{problem_.k} * d_), 0.0),
          masses_(at(problem_.k), 0.0), sums_(1)
    {
        centroids_.resize(means_.size());
        sums_[0].totals.resize(means_.size());
        sums_[0].masses.resize(masses_.size());
    }

    void run()
    {
        const std::int64_t batches = std::max<std::int64_t>(problem_.n_rows / options_.batch_size, 1);
        problem_.converged = 0;
        for (problem_.n_iter = 0; problem_.converged == 0 && problem_.n_iter < options_.max_iter; ++problem_.n_iter) {
            const std::vector<T> before = centroids_;
            for (std::int64_t b = 0; b < batches; ++b)
                step(first_of(b, batches), first_of(b + 1, batches));
            problem_.shift = 0.0;
            for (std::int64_t j = 0; j < problem_.k; ++j)
                problem_.shift += exact_distance(centroids_.data() + j * d_, before.data() + j * d_, d_);
            problem_.converged = problem_.shift <= problem_.tol ? 1 : 0;
            fits_.monitor.count_iteration(problem_.n_iter + 1, problem_.shift);
        }
    }

  private:
    // Batches differ by one row at most.
    std::int64_t first_of(std::int64_t batch, std::int64_t batches) const
    {
        const std::int64_t size = problem_.n_rows / batches, larger = problem_.n_rows % batches;
        return batch * size + std::min(batch, larger);
    }

    void step(std::int64_t from, std::int64_t to)
    {
        fits_.monitor.poll();
        std::vector<PgkmProblem> batch = {problem_};
        batch[0].first_row += from;
        batch[0].n_rows = to - from;
        fits_.assign(batch, sums_);
        for (std::int32_t j = 0; j < problem_.k; ++j)
            if (join(sums_[0].masses[at(j)]) != 0)
                move(j);
    }

    // means_ are over all that a centroid has seen, in float64 whatever the rows are.
    void move(std::int32_t j)
    {
        const Int128 count = join(sums_[0].masses[at(j)]);
        const double mass = fits_.mass_of(problem_, count);
        T *const centroid = centroids_.data() + std::int64_t{j} * d_;
        double *const mean = means_.data() + std::int64_t{j} * d_;
        masses_[at(j)] += mass;
        const double share = mass / masses_[at(j)];
        for (std::int32_t f = 0; f < d_; ++f) {
            const PgkmFeatureScale &scale = problem_.feature_scales[f];
            const double now = mean_of(join(sums_[0].totals[at(std::int64_t{j} * d_ + f)]), count, scale.origin,
                                       scale.exponent, problem_.weight_exponent);
            mean[f] = share == 1.0 ? now : mean[f] + share * (now - mean[f]);
        }
        std::vector<double> moved(mean, mean + d_);
        if (options_.metric == PGKM_COSINE && !normalise(moved.data(), d_))
            return; // no direction: it stays
        std::transform(moved.begin(), moved.end(), centroid, [](double value) { return static_cast<T>(value); });
    }

    Fits<T> &fits_;
    const PgkmOptions &options_;
    const std::int32_t d_;
    PgkmProblem &problem_;
    std::vector<T> &centroids_;
    std::vector<double> means_, masses_; // k x d, k
    std::vector<Assigned> sums_;         // of one batch
};

} // namespace

std::int64_t rows_to_seed(const FitTask &task, const PgkmProblem &problem)
{
    const std::int64_t wanted = std::max(4 * std::int64_t{task.options.batch_size}, 32 * std::int64_t{problem.k});
    return std::min(wanted, problem.n_rows);
}

template <typename T>
void fit_batches(Fits<T> &fits)
{
    for (std::size_t p = 0; p < fits.problems.size(); ++p)
        BatchFit<T>(fits, p).run();
}

template void fit_batches<float>(Fits<float> &);
template void fit_batches<double>(Fits<double> &);

} // namespace pgkm
