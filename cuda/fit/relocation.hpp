// relocation.hpp - what a fit leaves to the host: rows for clusters that have none, and, for a negative tol, whether
// two iterations' labels are the same. Both go over the rows on the device, slice by slice.
#pragma once

#include "fit/device_problem.hpp"
#include "backend/update.hpp"

namespace pgkm::cuda {

// Both expect the problem's control to say `running`, and where set 0 is meant its operands to be prepared.

// relocate_empty_clusters() for `sums`, which are those under centroid set 0.
template <typename T>
void relocate(DeviceProblem<T> &problem, Sums &sums);

// Whether centroid sets `set` and `other` (not 0) give all rows the same labels.
template <typename T>
bool same_labels(DeviceProblem<T> &problem, int set, int other);

} // namespace pgkm::cuda
