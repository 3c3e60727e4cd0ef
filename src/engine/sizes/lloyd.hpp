// lloyd.hpp - k-means with bounded sizes: Lloyd's iterations whose assignment is the balancer's.
//
// Such iterations: Bradley, Bennett, Demiriz (2000), constrained k-means. The inertia falls until labels rest, as
// without bounds.
#pragma once

#include "cpu/context.hpp"
#include "cpu/sums/cluster_sums.hpp"
#include "engine/job/monitor.hpp"
#include "engine/sizes/balancer.hpp"

namespace pgkm {

// The fit of one problem, whose rows have no weights. All throw Error.
template <typename T>
class BoundedFit {
  public:
    // The problem has first centroids; it, data and pool stay the caller's.
    BoundedFit(const cpu::Data &data, ThreadPool &pool, PgkmProblem &problem, const SizeBounds &bounds);

    // As PgkmBackend.fit: new centroids until labels rest, the shift is small, or max_iter.
    void iterate(const PgkmFitParams &params, Monitor &monitor);

    // As PgkmBackend.assign: of `wanted` labels, distances, within and sizes, where they are not NULL.
    void assign(PgkmAssignment &wanted);

  private:
    const T *centroids() const { return static_cast<const T *>(problem_.centroids); }
    bool move_rows(cpu::ClusterSums<T> &sums);
    void add_up(PgkmAssignment &wanted);

    PgkmProblem &problem_;
    const cpu::Rows<T> rows_;
    Balancer<T> balancer_;
    cpu::Buffer<std::int32_t> labels_, fresh_;
};

} // namespace pgkm
