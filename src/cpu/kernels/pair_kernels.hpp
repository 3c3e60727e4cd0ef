// pair_kernels.hpp - exact squared distances of single (point, centroid) pairs.
//
// For what is left after a filter: the candidates of one row are few and different from the
// next row's, so lanes cannot run over points. Eight pairs go side by side instead, which
// hides the latency of their sequential sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

struct PairKernels {
    // out[i] = D(x[i], c[i]) for i < count, of d features each.
    template <typename T>
    using Distances = void(const T *const *x, const T *const *c, std::int64_t count, int d, double *out);
    ForElements<Distances> distances;

    // out[i] = |x - c[i]|^2 by arithmetic of type T in any order. Where squares neither overflow nor underflow its
    // relative error is at most (d + 12) u, u = 2^-24 or 2^-53; one that underflows adds 2^-149 at most.
    template <typename T>
    using Estimates = void(const T *x, const T *const *c, int count, int d, T *out);
    ForElements<Estimates> estimates;
};

const PairKernels &pair_kernels(InstructionSet set);

// Bounds of the square of a distance, and of D, from an estimate or D.
template <typename T>
class SquareBounds {
  public:
    explicit SquareBounds(std::int32_t d)
        : error_(1.02 * (d + 12.0) * (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53) + (d + 4.0) * 0x1p-51),
          smallest_(2.0 * d * static_cast<double>(std::numeric_limits<T>::denorm_min()))
    {
    }

    double above(double square) const { return square * (1.0 + error_) + smallest_; }
    double below(double square) const
    {
        const double held = std::min(square, static_cast<double>(std::numeric_limits<T>::max()));
        return std::max(0.0, held * (1.0 - error_) - smallest_);
    }

  private:
    double error_, smallest_;
};

} // namespace pgkm::cpu
