// iteration.cpp - one iteration: assign blocks of rows, and move those whose label changed.
#include "cpu/fit/iteration.hpp"

#include <algorithm>
#include <atomic>

#include "cpu/assign/direct.hpp"
#include "numeric/error.hpp"

namespace pgkm::cpu {

template <typename T>
Iteration<T>::Iteration(const Data &data, ThreadPool &pool, const PgkmProblem &problem,
                        std::unique_ptr<Assigner<T>> assigner, std::int32_t *labels)
    : rows_(data, pool, problem), labels_(labels), sums_(rows_, problem)
{
    use(std::move(assigner));
}

template <typename T>
void Iteration<T>::use(std::unique_ptr<Assigner<T>> assigner)
{
    assigner_ = std::move(assigner);
    rows_.context.assignment.store(assigner_->strategy(), std::memory_order_relaxed);
    for (int worker = 0; worker < rows_.pool.size(); ++worker)
        fresh_.emplace_back(rows_.context.budget, assigner_->rows_at_once());
}

// What an assigner keeps may leave no room for what it needs: exact distances to all centroids need least.
template <typename T>
void Iteration<T>::begin(const T *centroids)
{
    try {
        return assigner_->begin(centroids);
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT || assigner_->strategy() == Assignment::direct)
            throw;
    }
    assigner_.reset();
    fresh_.clear();
    use(std::make_unique<Direct<T>>(rows_));
    assigner_->begin(centroids);
}

template <typename T>
bool Iteration<T>::run(const T *centroids)
{
    rows_.context.poll();
    begin(centroids);
    std::atomic<bool> changed = false;
    for_blocks(rows_, assigner_->rows_at_once(), [&](int worker, std::int64_t first, int count) {
        std::int32_t *old = labels_ + first;
        std::int32_t *now = fresh_[worker].data();
        std::copy_n(old, count, now);
        assigner_->assign(worker, first, count, now, nullptr);
        if (sums_.move(worker, first, count, old, now) == 0)
            return;
        changed.store(true, std::memory_order_relaxed);
        std::copy_n(now, count, old);
    });
    sums_.combine();
    return changed.load();
}

template class Iteration<float>;
template class Iteration<double>;

} // namespace pgkm::cpu
