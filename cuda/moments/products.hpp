// products.hpp (moments) - the kernels that sum products of deviations: what they are given. Each call enqueues work
// in context.compute and throws Error where a launch fails.
#pragma once

#include <cstdint>

#include "plugin/context.hpp"

namespace pgkm::cuda::moments {

// What the blocks of one segment of one problem read and write.
struct Segment {
    std::int64_t first_row; // of the problem
    std::int64_t n_rows;    // of the problem
    std::int64_t index;     // of the segment: it has the stages whose number is `index` modulo `count`
    std::int64_t count;
    std::int64_t shift; // of the problem, in Sums::shift
    std::int64_t slot;  // where its partial results begin: row_shares() of them
};

// The rows of the one problem that are at hand; n_rows 0: all rows of all problems are.
struct Chunk {
    std::int64_t first_row; // counted from the problem's first; whole stages come before
    std::int64_t n_rows;
};

// Partial results, one slot after the other.
struct Sums {
    const double *shift;      // d of each problem
    double *sums;             // 4 x d a slot: of the rows of equal number modulo 4
    double *cross;            // triangle(d) a slot
    const std::int32_t *stop; // non-zero: return at once
};

// Adds the rows of each segment to its slots in float64 on the tensor cores. values: row-major, d features a row, those
// of the chunk or all that the problems' first rows count from. segments: on the device. A problem's first chunk sets
// the slots. PGKM_UNSUPPORTED where a block of this GPU has too little shared memory.
template <typename T>
void add_products(Context &context, const T *values, int d, const Segment *segments, std::int64_t n_segments,
                  const Chunk &chunk, const Sums &sums);

// A problem's slots and where their sum goes.
struct Total {
    std::int64_t slot; // the first
    std::int64_t count;
    double *sums;  // d
    double *cross; // triangle(d)
};
// Sums the slots of each problem in their order. totals: on the device.
void add_slots(Context &context, int d, const Total *totals, std::int64_t n_totals, const Sums &sums);

} // namespace pgkm::cuda::moments
