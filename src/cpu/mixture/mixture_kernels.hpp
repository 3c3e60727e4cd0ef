// mixture_kernels.hpp - the E step and the M step's sums on one block of rows that was turned
// feature by feature (product_kernels.hpp), for every instruction set.
#pragma once

#include <cstdint>

#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// A lower triangular matrix in tiles of four rows: element (c, f) at
// (c / 4) * 4 * columns + f * 4 + c % 4, columns = d rounded up to four; rows beyond d are zero.
inline constexpr std::int64_t packed_columns(std::int64_t d)
{
    return (d + 3) / 4 * 4;
}
inline constexpr std::int64_t packed_size(std::int64_t d)
{
    return packed_columns(d) * packed_columns(d);
}

// Three of the widest vectors.
inline constexpr int transformed_rows = 24;

// What normalise() finds beside the responsibilities.
struct BlockDensity {
    double log_likelihood; // sum over the rows, each times its weight
    bool finite;           // false: a row has no finite density under any component
};

struct MixtureKernels {
    // out[f, r] = block[f, r] - mean[f]
    void (*centre)(const double *block, int stride, std::int32_t d, const double *mean, double *out);
    // The next two take the first `rows` rows of a block, a multiple of row_padding; runs of transformed_rows go
    // fastest. out[c, r] = (W block)[c, r] for a packed W; room for packed_columns(d) features in both
    void (*transform)(const double *block, int rows, int stride, std::int32_t d, const double *packed, double *out);
    // squares[r] = |W block[., r]|^2 for a packed W
    void (*transformed_squares)(const double *block, int rows, int stride, std::int32_t d, const double *packed,
                                double *squares);
    // squares[r] = sum over f of ((block[f, r] - mean[f]) factor[f])^2
    void (*scaled_squares)(const double *block, int stride, std::int32_t d, const double *mean, const double *factor,
                           double *squares);
    // Turns squares, k x stride, into responsibilities, in place: of exp(constant[j] - square / 2) the
    // share of each component, times the row's weight. Rows from `rows` on get 0. weights: NULL, or `stride` of them;
    // labels: NULL, or `rows` of them.
    BlockDensity (*normalise)(double *squares, int rows, int stride, std::int32_t k, const double *constants,
                              const double *weights, std::int32_t *labels);
    // out[f, r] = block[f, r] * weight[r]; returns the sum of the weights
    double (*weigh)(const double *block, int stride, std::int32_t d, const double *weight, double *out);
    // first[f] += sum of weight (x - mean), second[f] (unless NULL) += sum of weight (x - mean)^2;
    // returns the sum of the weights
    double (*weighted_sums)(const double *block, int stride, std::int32_t d, const double *weight, const double *mean,
                            double *first, double *second);
};

const MixtureKernels &mixture_kernels(InstructionSet set);

} // namespace pgkm::cpu
