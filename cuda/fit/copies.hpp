// copies.hpp - sums of which blocks have copies of their own in global memory, merged by a second
// kernel (the inter-block reduction of Aggarwal 2013, section 5.2; Lutz et al. 2018, "partitioned
// global"). Where there is no room for a copy per block, blocks share them.
#pragma once

#include "plugin/context.hpp"
#include "device/view.cuh"

namespace pgkm::cuda {

struct Copies {
    std::int64_t *cells; // count x n_cells, all zero
    int           count; // 0: the device's limit has no room for one
    std::int64_t  n_cells;
};

// Up to `wanted` copies within `most_bytes` and the device's limit, in the context's workspace.
Copies make_copies(Context &context, std::int64_t n_cells, int wanted, std::int64_t most_bytes, cudaStream_t stream);

// Adds them to `sums`.
void merge_copies(const Copies &copies, std::int64_t *sums, const Control *control, cudaStream_t stream);

// The copy that a block adds to.
__device__ inline std::int64_t *own_copy(const Copies &copies)
{
    return copies.cells + static_cast<int>(blockIdx.x) % copies.count * copies.n_cells;
}

} // namespace pgkm::cuda
