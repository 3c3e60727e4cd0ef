// held_rows.hpp - greedy k-means++ over rows that the multiprocessors' shared memory holds together: all steps in one
// launch. Errors throw Error: PGKM_CANCELLED, or a fault of the device.
#pragma once

#include <optional>
#include <vector>

#include "plugin/context.hpp"
#include "seed/sampler.cuh"

namespace pgkm::cuda {

// The positions of the chosen rows, k of them or all that lie apart; nothing where shared memory does not hold the
// rows.
template <typename T>
std::optional<std::vector<std::int64_t>> held_positions(Context &context, const SeedRows<T> &rows, const SeedKey &key,
                                                        std::int32_t k);

} // namespace pgkm::cuda
