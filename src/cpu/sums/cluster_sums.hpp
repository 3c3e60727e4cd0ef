// cluster_sums.hpp - integer sums of a problem's clusters, gathered by several threads.
//
// Every worker adds 64-bit integers into buffers of its own, which share no cache line with
// another's (Aggarwal 2013, section 2.4: false sharing), and they are emptied into 128-bit
// totals before 2^17 additions, where each copy of a row counts. Sums are exact, so rows may also leave a cluster
// again: after the first iteration only the rows whose label changed are touched.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "cpu/rows.hpp"
#include "cpu/sums/sum_kernels.hpp"
#include "backend/update.hpp"

namespace pgkm::cpu {

template <typename T>
class ClusterSums {
  public:
    ClusterSums(const Rows<T> &rows, const PgkmProblem &problem);

    // Moves rows first .. first + count - 1 between clusters (from[i] < 0: it was in none);
    // count <= 2^17. Returns how many moved. From any worker.
    std::int64_t move(int worker, std::int64_t first, int count, const std::int32_t *from, const std::int32_t *to);

    // Brings all partial sums into the totals, which the rest then gives. From the calling thread.
    void combine();
    bool has_empty() const;
    Sums copy() const;
    const Buffer<Int128> &totals() const { return totals_; } // k x d
    const Buffer<Int128> &masses() const { return masses_; } // k

  private:
    struct Partial {
        Buffer<std::int64_t> features; // k x limbs x d
        Buffer<std::int64_t> masses;   // k x limbs
        std::int64_t used = 0;         // additions since it was last empty, at most
    };
    // How many of the first of these rows partial sums hold at once, and how many copies of them move.
    std::pair<int, std::int64_t> fitting(std::int64_t first, int count, const std::int32_t *from,
                                         const std::int32_t *to) const;
    void add(Partial &partial, std::size_t first, std::size_t last);
    void add_masses(Partial &partial);

    Rows<T> rows_;
    const SumKernels &kernels_;
    const std::size_t limbs_; // 2 with weights
    Buffer<double> scale_;    // d origins, then d powers of two
    double weight_scale_;
    std::vector<Partial> partials_;
    std::mutex mutex_; // totals_ while workers run
    Buffer<Int128> totals_, masses_;
};

} // namespace pgkm::cpu
