// iteration.cpp - one iteration: assign blocks of rows, and move those whose label changed.
#include "cpu/fit/iteration.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cpu/assign/direct.hpp"

namespace pgkm::cpu {

template <typename T>
Iteration<T>::Iteration(const Data &data, ThreadPool &pool, const PgkmProblem &problem, Purpose purpose,
                        std::int32_t *labels, Assigner<T> *given)
    : rows_(data, pool, problem), purpose_(purpose), labels_(labels), given_(given), sums_(rows_, problem)
{
    rows_.context.budget.add(*this);
}

template <typename T>
Iteration<T>::~Iteration()
{
    rows_.context.budget.remove(*this);
}

template <typename T>
void Iteration<T>::give_up()
{
    const std::lock_guard lock(mutex_);
    is_short_ = is_short_ || assigner_ != nullptr;
    assigner_.reset();
}

// The assigner is out of reach of give_up() while it runs.
template <typename T>
bool Iteration<T>::run(const T *centroids)
{
    rows_.context.poll();
    changed_ = false;
    if (given_ != nullptr) {
        run_by(*given_, centroids);
    } else {
        std::unique_ptr<Assigner<T>> assigner;
        bool is_short = false;
        {
            const std::lock_guard lock(mutex_);
            assigner = std::move(assigner_);
            is_short = is_short_;
        }
        if (is_short && !assigner)
            assigner = std::make_unique<Direct<T>>(rows_);
        assign_with<T>(assigner, rows_, purpose_, [&](Assigner<T> &made) { run_by(made, centroids); });
        const std::lock_guard lock(mutex_);
        assigner_ = std::move(assigner);
    }
    sums_.combine();
    return changed_;
}

// Where this ends with an error, rows that have moved have their new labels.
template <typename T>
void Iteration<T>::run_by(Assigner<T> &assigner, const T *centroids)
{
    rows_.context.assignment.store(assigner.strategy(), std::memory_order_relaxed);
    assigner.begin(centroids);
    std::vector<Buffer<std::int32_t>> fresh; // the new labels of a block, of each worker
    for (int worker = 0; worker < rows_.pool.size(); ++worker)
        fresh.emplace_back(rows_.context.budget, assigner.rows_at_once());
    for_blocks(rows_, assigner.rows_at_once(), [&](int worker, std::int64_t first, int count) {
        std::int32_t *old = labels_ + first;
        std::int32_t *now = fresh[worker].data();
        std::copy_n(old, count, now);
        assigner.assign(worker, first, count, now, nullptr);
        if (sums_.move(worker, first, count, old, now) == 0)
            return;
        changed_.store(true, std::memory_order_relaxed);
        std::copy_n(now, count, old);
    });
}

template class Iteration<float>;
template class Iteration<double>;

} // namespace pgkm::cpu
