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
    BatchFit(const FitTask &task, std::int32_t d, bool weighted, Session &session, Monitor &monitor,
             PgkmProblem &problem, std::vector<T> &centroids)
        : options_(task.options), d_(d), weighted_(weighted), session_(session), monitor_(monitor), problem_(problem),
          centroids_(centroids), means_(at(std::int64_t{problem.k} * d), 0.0), masses_(at(problem.k), 0.0),
          totals_(means_.size()), counts_(masses_.size())
    {
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
            monitor_.count_iteration(problem_.n_iter + 1, problem_.shift);
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
        monitor_.poll();
        std::vector<PgkmProblem> batch = {problem_};
        batch[0].first_row += from;
        batch[0].n_rows = to - from;
        PgkmAssignment wanted = {};
        wanted.totals = totals_.data();
        wanted.masses = counts_.data();
        session_.run(&PgkmBackend::assign, batch, &wanted);
        for (std::int32_t j = 0; j < problem_.k; ++j)
            if (join(counts_[at(j)]) != 0)
                move(j);
    }

    // means_ are over all that a centroid has seen, in float64 whatever the rows are.
    void move(std::int32_t j)
    {
        const Int128 count = join(counts_[at(j)]);
        const double mass =
            weighted_ ? scale_by(to_double(count), -problem_.weight_exponent - lower_limb_bits) : to_double(count);
        T *const centroid = centroids_.data() + std::int64_t{j} * d_;
        double *const mean = means_.data() + std::int64_t{j} * d_;
        masses_[at(j)] += mass;
        const double share = mass / masses_[at(j)];
        for (std::int32_t f = 0; f < d_; ++f) {
            const PgkmFeatureScale &scale = problem_.feature_scales[f];
            const double now = mean_of(join(totals_[at(std::int64_t{j} * d_ + f)]), count, scale.origin, scale.exponent,
                                       problem_.weight_exponent);
            mean[f] = share == 1.0 ? now : mean[f] + share * (now - mean[f]);
        }
        std::vector<double> moved(mean, mean + d_);
        if (options_.metric == PGKM_COSINE && !normalise(moved.data(), d_))
            return; // no direction: it stays
        std::transform(moved.begin(), moved.end(), centroid, [](double value) { return static_cast<T>(value); });
    }

    const PgkmOptions &options_;
    const std::int32_t d_;
    const bool weighted_;
    Session &session_;
    Monitor &monitor_;
    PgkmProblem &problem_;
    std::vector<T> &centroids_;
    std::vector<double> means_, masses_;      // k x d, k
    std::vector<PgkmInt128> totals_, counts_; // k x d, k: of one batch
};

} // namespace

std::int64_t rows_to_seed(const FitTask &task, const PgkmProblem &problem)
{
    const std::int64_t wanted = std::max(4 * std::int64_t{task.options.batch_size}, 32 * std::int64_t{problem.k});
    return std::min(wanted, problem.n_rows);
}

template <typename T>
void fit_batches(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor,
                 std::vector<PgkmProblem> &problems, std::vector<std::vector<T>> &centroids)
{
    for (std::size_t g = 0; g < problems.size(); ++g) {
        centroids[g].resize(at(std::int64_t{problems[g].k} * rows.d()));
        BatchFit<T>(task, rows.d(), rows.points().weights != nullptr, session, monitor, problems[g], centroids[g])
            .run();
    }
}

template void fit_batches<float>(const LoadedRows &, const FitTask &, Session &, Monitor &, std::vector<PgkmProblem> &,
                                 std::vector<std::vector<float>> &);
template void fit_batches<double>(const LoadedRows &, const FitTask &, Session &, Monitor &, std::vector<PgkmProblem> &,
                                  std::vector<std::vector<double>> &);

} // namespace pgkm
