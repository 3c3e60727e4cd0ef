// lloyd.cpp - iterations with bounded sizes, and the assignment that ends them.
#include "engine/sizes/lloyd.hpp"

#include <algorithm>
#include <atomic>

#include "cpu/assign/own_distances.hpp"
#include "cpu/fit/new_centroids.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr int block_rows = 1024;

} // namespace

template <typename T>
BoundedFit<T>::BoundedFit(const cpu::Data &data, ThreadPool &pool, PgkmProblem &problem, const SizeBounds &bounds)
    : problem_(problem), rows_(data, pool, problem), balancer_(rows_, bounds),
      labels_(data.context.budget, at(problem.n_rows), -1), fresh_(data.context.budget, at(problem.n_rows))
{
}

template <typename T>
void BoundedFit<T>::iterate(const PgkmFitParams &params, Monitor &monitor)
{
    problem_.n_iter = 0;
    problem_.converged = 0;
    problem_.shift = 0.0;
    cpu::ClusterSums<T> sums(rows_, problem_);
    while (problem_.n_iter < params.max_iter && problem_.converged == 0) {
        balancer_.assign(centroids(), fresh_.data());
        const bool changed = move_rows(sums);
        problem_.shift = cpu::new_centroids(rows_, problem_, params.metric, sums, labels_.data());
        ++problem_.n_iter;
        problem_.converged = !changed || problem_.shift <= problem_.tol;
        if (&rows_.pool == &rows_.context.pool)
            monitor.count_iteration(problem_.n_iter, problem_.shift);
    }
}

// Brings sums and labels_ from the last labels to the fresh ones. Whether one of them changed.
template <typename T>
bool BoundedFit<T>::move_rows(cpu::ClusterSums<T> &sums)
{
    std::atomic<bool> changed = false;
    cpu::for_blocks(rows_, block_rows, [&](int worker, std::int64_t first, int count) {
        if (sums.move(worker, first, count, labels_.data() + first, fresh_.data() + first) == 0)
            return;
        changed.store(true, std::memory_order_relaxed);
        std::copy_n(fresh_.data() + first, count, labels_.data() + first);
    });
    sums.combine();
    return changed.load();
}

template <typename T>
void BoundedFit<T>::assign(PgkmAssignment &wanted)
{
    balancer_.assign(centroids(), labels_.data());
    if (wanted.labels != nullptr)
        std::copy(labels_.begin(), labels_.end(), wanted.labels);
    add_up(wanted);
}

template <typename T>
void BoundedFit<T>::add_up(PgkmAssignment &wanted)
{
    const std::size_t k = at(problem_.k), workers = at(rows_.pool.size());
    const double scale = power_of_two(problem_.distance_exponent);
    std::vector<cpu::Buffer<Int128>> within;
    std::vector<cpu::Buffer<std::int64_t>> sizes;
    for (std::size_t worker = 0; worker < workers; ++worker) {
        within.emplace_back(rows_.context.budget, k, 0);
        sizes.emplace_back(rows_.context.budget, k, 0);
    }
    cpu::for_blocks(rows_, block_rows, [&](int worker, std::int64_t first, int count) {
        double squares[block_rows];
        own_distances(rows_, centroids(), first, count, labels_.data() + first, squares);
        if (wanted.distances != nullptr)
            std::copy_n(squares, count, wanted.distances + first);
        for (int i = 0; i < count; ++i) {
            const auto cluster = at(labels_[at(first + i)]);
            const Limbs limbs = quantise_square(squares[i], scale);
            within[at(worker)][cluster] += join_limbs(limbs.hi, limbs.lo);
            ++sizes[at(worker)][cluster];
        }
    });
    for (std::size_t j = 0; j < k; ++j) {
        Int128 square = 0;
        std::int64_t size = 0;
        for (std::size_t worker = 0; worker < workers; ++worker) {
            square += within[worker][j];
            size += sizes[worker][j];
        }
        if (wanted.within != nullptr)
            wanted.within[j] = split(square);
        if (wanted.sizes != nullptr)
            wanted.sizes[j] = size;
    }
}

template class BoundedFit<float>;
template class BoundedFit<double>;

} // namespace pgkm
