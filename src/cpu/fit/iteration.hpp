// iteration.hpp - Lloyd's iterations over one problem, one at a time: the labels and sums under given centroids.
//
// Bounds and sums last from one iteration to the next, so that later ones touch few rows. Where memory is short, what
// the assigner keeps is given up between two iterations, and the later ones take exact distances to all centroids.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/sums/cluster_sums.hpp"

namespace pgkm::cpu {

template <typename T>
class Iteration final : private Spare {
  public:
    // Of the problem its k, scales and weight exponent are read here. labels: n, -1 each; given: NULL, or what assigns.
    // Both stay the caller's.
    Iteration(const Data &data, ThreadPool &pool, const PgkmProblem &problem, Purpose purpose, std::int32_t *labels,
              Assigner<T> *given = nullptr);
    ~Iteration();
    Iteration(const Iteration &) = delete;
    Iteration &operator=(const Iteration &) = delete;

    // Brings labels and sums to these centroids (k x d). Whether a label changed.
    bool run(const T *centroids);

    const Rows<T> &rows() const { return rows_; }
    const ClusterSums<T> &sums() const { return sums_; }

  private:
    void give_up() override;
    void run_by(Assigner<T> &assigner, const T *centroids);

    Rows<T> rows_;
    const Purpose purpose_;
    std::int32_t *labels_;
    Assigner<T> *const given_;
    std::mutex mutex_; // the next two
    std::unique_ptr<Assigner<T>> assigner_;
    bool is_short_ = false;
    std::atomic<bool> changed_ = false;
    ClusterSums<T> sums_;
};

} // namespace pgkm::cpu
