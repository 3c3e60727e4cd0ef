// iteration.cpp - one iteration: assign blocks of rows, and move those whose label changed.
#include "cpu/fit/iteration.hpp"

#include <algorithm>
#include <atomic>

namespace pgkm::cpu {

template <typename T>
Iteration<T>::Iteration(const Data &data, ThreadPool &pool, const PgkmProblem &problem,
                        std::unique_ptr<Assigner<T>> assigner, std::int32_t *labels)
    : rows_(data, pool, problem), labels_(labels), assigner_(std::move(assigner)), sums_(rows_, problem)
{
    data.context.assignment.store(assigner_->strategy(), std::memory_order_relaxed);
    for (int worker = 0; worker < pool.size(); ++worker)
        fresh_.emplace_back(data.context.budget, assigner_->rows_at_once());
}

template <typename T>
bool Iteration<T>::run(const T *centroids)
{
    rows_.context.poll();
    assigner_->begin(centroids);
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
