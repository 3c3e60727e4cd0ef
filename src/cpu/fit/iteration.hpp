// iteration.hpp - Lloyd's iterations over one problem, one at a time: the labels and sums under given centroids.
//
// Bounds and sums last from one iteration to the next, so that later ones touch few rows.
#pragma once

#include <memory>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/sums/cluster_sums.hpp"

namespace pgkm::cpu {

template <typename T>
class Iteration {
  public:
    // Of the problem its k, scales and weight exponent are read here. labels: n, -1 each; they stay the caller's.
    Iteration(const Data &data, ThreadPool &pool, const PgkmProblem &problem, Purpose purpose, std::int32_t *labels)
        : Iteration(data, pool, problem, make_assigner(Rows<T>(data, pool, problem), purpose), labels)
    {
    }
    Iteration(const Data &data, ThreadPool &pool, const PgkmProblem &problem, std::unique_ptr<Assigner<T>> assigner,
              std::int32_t *labels);

    // Brings labels and sums to these centroids (k x d). Whether a label changed.
    bool run(const T *centroids);

    const Rows<T> &rows() const { return rows_; }
    const ClusterSums<T> &sums() const { return sums_; }

  private:
    void use(std::unique_ptr<Assigner<T>> assigner);
    void begin(const T *centroids);

    Rows<T> rows_;
    std::int32_t *labels_;
    std::unique_ptr<Assigner<T>> assigner_;
    std::vector<Buffer<std::int32_t>> fresh_; // the new labels of a block, per worker
    ClusterSums<T> sums_;
};

} // namespace pgkm::cpu
