// sorted.hpp - sums that follow the rows of a problem whose assignment and sums run apart.
#pragma once

#include "sums/entries.hpp"

namespace pgkm::cuda {

// Enqueues: sums of the rows' features and masses, all parts, go from entries.last to `labels`, which entries.last
// becomes.
template <typename T>
void follow_rows(const Stage<T> &stage, View<T> view, const std::int32_t *labels, const Entries &entries,
                 const Accumulators &sums);

} // namespace pgkm::cuda
