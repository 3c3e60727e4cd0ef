// relocation.hpp - what a fit leaves to the host: which rows go to clusters that have none, and, for a negative tol,
// whether two iterations' labels are the same. Both go over the rows on the device, slice by slice.
#pragma once

#include "fit/device_problem.hpp"
#include "backend/update.hpp"

namespace pgkm::cuda {

// Both expect the problem's control to say `running`, and where set 0 is meant its operands to be prepared.

// relocate_by_farthest() for the masses under centroid set 0.
template <typename T>
void relocate(DeviceProblem<T> &problem, std::vector<Int128> &masses, const MoveRows &move);

// The sums on the device as they are once rows have moved to empty clusters.
class MovedSums {
  public:
    // points, of: what the rows are of. masses: all clusters', from now on.
    template <typename T>
    MovedSums(DeviceProblem<T> &problem, const Accumulators &sums, const PgkmPoints &points, const PgkmProblem &of,
              const std::vector<MovedRow> &moved, const std::vector<Int128> &masses);
    // Everything is as before; masses: those before.
    void put_back(const std::vector<Int128> &masses);

  private:
    void set_masses(const std::vector<Int128> &masses);
    void swap(std::int32_t added);

    Context &context_;
    const Control *control_;
    Accumulators sums_;
    std::int32_t k_, d_;
    std::vector<std::int32_t> clusters_; // whose totals change: first those that lose rows
    std::vector<std::int64_t> limbs_;    // of what changes: both live until the caller waits
    NearArray<std::int32_t> which_;      // clusters_, for the device
    NearArray<std::int64_t> totals_;     // limbs_: added to totals, or in their place; then what these were
};

// Whether centroid sets `set` and `other` (not 0) give all rows the same labels.
template <typename T>
bool same_labels(DeviceProblem<T> &problem, int set, int other);

} // namespace pgkm::cuda
