// products.hpp - the kernels that sum products of deviations, one problem and segment a block.
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
    std::int64_t problem;   // of the call
    std::int64_t shift;     // of the problem, in Sums::shift
    std::int64_t slot;      // where its partial results begin: row_groups() of them
};

// The rows of the one problem that are at hand; n_rows 0: all rows of all problems are.
struct Chunk {
    std::int64_t first_row; // counted from the problem's first; whole stages come before
    std::int64_t n_rows;
};

// Partial results, one slot after the other.
struct Sums {
    const double *shift; // d of each problem
    double       *sums;  // 4 x d a slot: of the rows of equal number modulo 4
    double       *cross; // triangle(d) a slot
    const std::int32_t *stop; // non-zero: return at once
};

// Adds the rows of each segment to its slots in float64 on the tensor cores. `values` are those of
// the chunk, or all that the problems' first rows count from. A problem's first chunk sets the slots.
template <typename T>
void add_products(Context &context, const T *values, int d, const Segment *segments, std::int64_t n_segments,
                  const Chunk &chunk, const Sums &sums);

// How float32 rows of up to 128 features become pairs of fp16 values.
struct HalfScales {
    const float  *shift;    // d of each problem: what deviations are taken from
    float        *largest;  // d of each problem: largest deviation in a sample of the rows, see scale_of()
    std::int32_t *overflow; // of each problem: becomes 1 where a scaled deviation is out of fp16's range
};

// Rows of the sample, spread evenly over a problem of n rows, and the number of row i of them.
inline constexpr std::int64_t most_sample_rows = 1024;
__host__ __device__ inline std::int64_t sample_row(std::int64_t n, std::int64_t i)
{
    const std::int64_t count = n < most_sample_rows ? n : most_sample_rows;
    return n / count * i + n % count * i / count;
}

// Finds scales.largest, which is zero, for resident rows; segments of index 0 name the problems.
void find_largest(Context &context, const float *values, int d, const Segment *segments, std::int64_t n_segments,
                  const HalfScales &scales);

// As add_products(), by pairs of fp16 values, for d <= 128; the sums are about scales.shift.
void add_half_products(Context &context, const float *values, int d, const Segment *segments, std::int64_t n_segments,
                       const Chunk &chunk, const Sums &sums, const HalfScales &scales);
// The same on a device of compute capability 9.0.
void add_wgmma_products(Context &context, const float *values, int d, const Segment *segments, std::int64_t n_segments,
                        const Chunk &chunk, const Sums &sums, const HalfScales &scales);

// Sums the slots of a problem in their order.
struct Total {
    std::int64_t slot; // the first
    std::int64_t count;
    double      *sums;  // d
    double      *cross; // triangle(d)
};
void add_slots(Context &context, int d, const Total *totals, std::int64_t n_totals, const Sums &sums);

} // namespace pgkm::cuda::moments
