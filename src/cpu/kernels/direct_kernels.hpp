// direct_kernels.hpp - exact squared distances of a block of points to panels of centroids.
//
// Lanes run over points, features in order, one fused multiply-add each: that is the
// contract's D to the last bit, so what these kernels find needs no settling.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

// Centroids come in panels of this many, feature-major: panel[f * panel_width + j].
inline constexpr int panel_width = 4;
// Points per block are a multiple of this: four AVX-512 vectors of float64.
inline constexpr int block_step = 32;

struct DirectKernels {
    // Transposes count <= width rows of d values to block[f * width + i]; see pack-inl.hpp.
    template <typename T>
    using Pack = void(const T *const *rows, int count, int d, int width, double *block);
    ForElements<Pack> pack;

    // Lowers best[i] and label[i] (an index as float64) by `count` panels whose first centroid
    // has index first. Ascending calls keep the lowest index on a tie.
    void (*nearest)(const double *block, int width, int d, const double *panels, std::int64_t count, double first,
                    double *best, double *label);
};

const DirectKernels &direct_kernels(InstructionSet set);

} // namespace pgkm::cpu
