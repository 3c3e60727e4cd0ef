// constant.hpp - batches of centroids through constant memory.
//
// Constant memory belongs to the process, not to a stream: what one job copies there another's
// kernels would read. So one job at a time holds it (Job::constant); others take the same
// strategy's kernel without it.
#pragma once

#include <atomic>

#include "plan/stages.hpp"

namespace pgkm::cuda {

inline constexpr int constant_bytes = 61440; // of 65,536; kernels' own constants need some

// Holds the process's constant memory, or does not.
class ConstantLease {
  public:
    explicit ConstantLease(const Context &context) : context_(context) {}
    ConstantLease(const ConstantLease &) = delete;
    ConstantLease &operator=(const ConstantLease &) = delete;
    ~ConstantLease()
    {
        if (!held_)
            return;
        cudaStreamSynchronize(context_.compute.get()); // kernels may still read it
        taken().store(false);
    }
    // Whether it is held now.
    bool take()
    {
        held_ = held_ || !taken().exchange(true);
        return held_;
    }
    bool held() const { return held_; }

  private:
    static std::atomic<bool> &taken();
    const Context &context_;
    bool           held_ = false;
};

// Centroids lie there in float64, converted once and not for every row, in groups of eight:
// feature by feature, the eight of the group beside each other. Places beyond the last are NaN,
// which no comparison finds nearer.
inline constexpr int constant_group = 8;

// Centroids per batch, whole groups; 0 where not one group fits.
inline int constant_batch(int d)
{
    return static_cast<int>(constant_bytes / (std::int64_t{d} * 8 * constant_group)) * constant_group;
}

// Enqueues the copy of `count` centroids to `room`, the address of a __constant__ array.
template <typename T>
void fill_constant(double *room, const T *centroids, int count, int d, cudaStream_t stream);

// Calls body(first centroid, count) after the copy of each batch to `symbol`.
template <typename T, typename Body>
void in_constant_batches(const Stage<T> &stage, const View<T> &view, const void *symbol, Body &&body)
{
    void *room = nullptr;
    checked("cudaGetSymbolAddress", [&] { return cudaGetSymbolAddress(&room, symbol); });
    const int batch = constant_batch(view.d);
    for (int first = 0; first < view.k; first += batch) {
        const int count = std::min(batch, view.k - first);
        fill_constant(static_cast<double *>(room), view.centroids + std::int64_t{first} * view.d, count, view.d, stage.stream);
        body(first, count);
    }
}

} // namespace pgkm::cuda
