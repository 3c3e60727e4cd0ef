// carver.cuh - arrays that lie one after the other in one piece of memory: the device's, or a block's shared memory.
#pragma once

#include <cstddef>

namespace pgkm::cuda {

// Hands out arrays that begin at multiples of `unit` bytes; with a null base it only measures.
class Carver {
  public:
    __host__ __device__ explicit Carver(void *base, std::size_t unit = 256)
        : base_(static_cast<char *>(base)), unit_(unit)
    {
    }
    template <typename V, typename Count>
    __host__ __device__ V *take(Count count)
    {
        V *piece = reinterpret_cast<V *>(base_ + used_);
        used_ += (static_cast<std::size_t>(count) * sizeof(V) + unit_ - 1) / unit_ * unit_;
        return piece;
    }
    __host__ __device__ std::size_t used() const { return used_; }

  private:
    char *base_;
    std::size_t unit_, used_ = 0;
};

} // namespace pgkm::cuda
