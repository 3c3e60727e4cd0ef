// copies.cuh - sums in global memory: each block adds to a copy of its own, and a second kernel adds the copies up
// (the inter-block reduction of Aggarwal 2013, section 5.2; Lutz et al. 2018, "partitioned global"). Where there is no
// room for a copy per block, blocks share them.
#pragma once

#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

struct Copies {
    std::int64_t *sums; // count x n_sums, all zero
    int count;          // 0: the device's limit has no room for one
    std::int64_t n_sums;

    // The copy that a block adds to.
    __device__ std::int64_t *own() const { return sums + static_cast<int>(blockIdx.x) % count * n_sums; }
};

__global__ void merge_kernel(Copies copies, const Control *control, std::int64_t *sums)
{
    if (stopped(control))
        return;
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= copies.n_sums)
        return;
    std::int64_t sum = 0;
    for (int c = 0; c < copies.count; ++c)
        sum += copies.sums[c * copies.n_sums + i];
    sums[i] += sum;
}

// Each value of the rows to the copy of its block.
template <typename What, typename T>
__global__ void copy_kernel(View<T> view, const Control *control, const std::int32_t *labels, Copies copies)
{
    if (stopped(control))
        return;
    std::int64_t *own = copies.own();
    const int width = What::width(view);
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < view.n * width; i += stride) {
        const std::int64_t row = i / width;
        const int f = static_cast<int>(i - row * width);
        add_limbs(own + (std::int64_t{labels[row]} * width + f) * 2, split_limbs(What::integer(view, row, f)));
    }
}

// Up to `wanted` copies within `most_bytes` and the device's limit, in the context's workspace.
inline Copies make_copies(Context &context, std::int64_t n_sums, int wanted, std::int64_t most_bytes,
                          cudaStream_t stream)
{
    const std::int64_t bytes_of_copy = n_sums * 8, most = std::min(most_bytes, wanted * bytes_of_copy);
    const auto room = static_cast<std::int64_t>(context.scratch_room(static_cast<std::uint64_t>(most)));
    Copies copies = {nullptr, static_cast<int>(room / bytes_of_copy), n_sums};
    if (copies.count == 0)
        return copies;
    const std::size_t bytes = static_cast<std::size_t>(n_sums) * static_cast<std::size_t>(copies.count) * 8;
    copies.sums = context.scratch(bytes);
    enqueue_fill(copies.sums, 0, bytes, stream);
    return copies;
}

// Adds them to `sums`.
inline void merge_copies(const Copies &copies, std::int64_t *sums, const Control *control, cudaStream_t stream)
{
    const auto blocks = static_cast<unsigned>((copies.n_sums + 255) / 256);
    enqueue(merge_kernel, blocks, 256, 0, stream, copies, control, sums);
}

} // namespace
} // namespace pgkm::cuda
