// carver.hpp - arrays that lie one after the other in one piece of memory.
#pragma once

#include <cstddef>

namespace pgkm::cuda {

// Hands out aligned pieces; with a null base it only measures.
class Carver {
  public:
    explicit Carver(char *base) : base_(base) {}
    template <typename V>
    V *take(std::size_t count)
    {
        V *piece = reinterpret_cast<V *>(base_ + used_);
        used_ += (count * sizeof(V) + 255) / 256 * 256;
        return piece;
    }
    std::size_t used() const { return used_; }

  private:
    char *base_;
    std::size_t used_ = 0;
};

} // namespace pgkm::cuda
