// exact_kernels.hpp - exact squared distances: of a block of points to centroids, and of single pairs.
//
// Features in order, one fused multiply-add each: that is the contract's D to the last bit, so what these kernels find
// needs no settling. In blocks lanes run over points. What is left after a filter are pairs: the candidates of one row
// are few and different from the next row's. Eight of them go side by side, which hides the latency of their sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

// Points of a block are a multiple of this: four AVX-512 vectors of float64.
inline constexpr int block_step = 32;
inline constexpr int list_panel = 4; // centroids that share the loads of points
inline constexpr int list_step = 8;  // one AVX-512 vector of float64

// Centroids are rows of `wide`: k x d, of which a list names some. block[f * width + i] is feature f of point i; width
// is a multiple of list_step.
struct ExactKernels {
    // Transposes count <= width rows of d values to block[f * width + i]; see pack-inl.hpp.
    template <typename T>
    using Pack = void(const T *const *rows, int count, int d, int width, double *block);
    ForElements<Pack> pack;

    // Lowers best[i] and label[i] (an index as float64) by `count` centroids from `first` on; width is a multiple of
    // block_step, and count of list_panel. With ascending calls the lowest index stays on a tie.
    void (*nearest)(const double *block, int width, int d, const double *wide, std::int64_t first, int count,
                    double *best, double *label);

    // The same, and the second best, by listed centroids; lists ascend, too.
    void (*nearest_listed)(const double *block, int width, int d, const double *wide, const std::int32_t *list,
                           int count, double *best, double *second, double *label);

    // out[q * width + i] = D(point i, centroid list[q]).
    void (*distances)(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
                      double *out);

    // out[i] = D(x[i], c[i]) for i < count, of d features each.
    template <typename T>
    using Pairs = void(const T *const *x, const T *const *c, std::int64_t count, int d, double *out);
    ForElements<Pairs> pairs;

    // out[i] = |x - c[i]|^2 by arithmetic of type T in any order. Where squares neither overflow nor underflow its
    // relative error is at most (d + 12) u, u = 2^-24 or 2^-53; one that underflows adds 2^-149 at most.
    template <typename T>
    using Estimates = void(const T *x, const T *const *c, int count, int d, T *out);
    ForElements<Estimates> estimates;

    // The same of count rows and k points, in float32: out[j * stride + i] is that of x[i] and c[j]. There is room for
    // a multiple of four rows.
    template <typename T>
    using EstimatesOfRows = void(const T *const *x, int count, const T *const *c, int k, int d, int stride, float *out);
    ForElements<EstimatesOfRows> estimates_of_rows;
};

const ExactKernels &exact_kernels(InstructionSet set);

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
    // The estimate of a D that is at most `square`, at most.
    double score_above(double square) const { return (square + smallest_) / (1.0 - error_) * (1.0 + 0x1p-50); }

  private:
    double error_, smallest_;
};

} // namespace pgkm::cpu
