// ordered_rows.hpp - rows in the order of their nearest pivots, and as fp16 relative to them: what the assignment on
// the tensor cores, strips and the filter of k-means++ read.
//
// A filter errs in proportion to |x - p| |c - p|. With one shift p for all rows, data that lies in clumps far apart
// makes that error larger than the gaps between centroids of one clump, and nearly every row must be settled. So rows
// go to the nearest of a few pivots, and each pivot is the shift of its rows; how far they lie from it also tells which
// centroids can be nearest to any of them at all (triangle inequality), often a small part of them. Any pivots are
// right: bounds are taken from the rows that a pivot has.
//
// All of it follows from the rows alone. It is made once, and stays beside loaded rows from one call to the next as
// long as nothing else wants the memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <memory>

#include "device/carver.cuh"
#include "plugin/context.hpp"

namespace pgkm::cuda {

inline constexpr int most_pivots = 16;    // a multiple of 8
inline constexpr int pivot_samples = 256; // rows at most among which they are found
inline constexpr int radius_d = 64;       // most features of rows whose pivots have a radius

struct OrderFacts {
    // Zero at first.
    std::int32_t count[most_pivots];   // rows
    std::int32_t cursor[most_pivots];  // of them that have their place
    std::int32_t members[most_pivots]; // sampled rows, whose mean the pivot is
    std::uint32_t square[most_pivots]; // bits of the largest squared distance of a row
    unsigned long long box;            // bits of the largest |x_i - mean_i|, as double
    // Written before they are read.
    std::int32_t pivots;
    std::int32_t usable; // 0: values too large for the element type's differences
    double scale;        // a power of two that brings all centred values below 2^14, so that no fp16 overflows
    std::int32_t offset[most_pivots + 1]; // each pivot's first place
    std::int32_t seed[most_pivots];       // samples
    float half_norm[most_pivots];         // of pivots less the mean; infinite where there is none
    float radius[most_pivots];            // at least |x - p| of every row, of up to radius_d features
};

// What kernels read and write.
template <typename T>
struct OrderedRows {
    const T *values; // n x d
    std::int64_t n;
    std::int32_t d;
    std::int32_t d8; // d padded to 8
    OrderFacts *facts;
    T *pivots;           // most_pivots x d
    std::int32_t *order; // n: rows, pivot by pivot
    __half *halves;      // n x d8, in `order`: x~ = fp16((x - p) scale); nullptr: they are not wanted
    float2 *measures;    // n: sums of squares of x~ and of what rounding took (halves.cuh)
    // While the order is made:
    T *sums;              // most_pivots x d: of x - mean over each pivot's samples; zero at first
    T *mean;              // d: of the samples
    float *pairs;         // samples x (samples + 1): squared distances from each other, and from the mean
    __nv_bfloat16 *tile;  // d / 16 rounded up x 16 x 16: pivots less the mean, chunk by chunk
    std::uint8_t *of_row; // n
};

// Carves the arrays of n rows, n below 2^31.
template <typename T>
OrderedRows<T> carve_order(Carver &carver, std::int64_t n, std::int32_t d);
// Of the fp16 rows, which are made by themselves.
template <typename T>
void carve_halves(Carver &carver, OrderedRows<T> &rows);

// As many pivots as so many rows repay, with at most 128 MB of fp16 columns of k centroids for each of them.
int pivots_for(std::int64_t n, std::int32_t d, std::int32_t k);

// Orders the rows by at most so many pivots. Only enqueued, like all here.
template <typename T>
void order_rows(const Context &context, const OrderedRows<T> &rows, int most);
// The fp16 rows in the present order.
template <typename T>
void make_halves(const Context &context, const OrderedRows<T> &rows);

// An order with memory of its own.
template <typename T>
struct RowOrder : Kept {
    DeviceArray<char> memory, halves;
    OrderedRows<T> rows{};
    int most = 0; // pivots that were asked for

    std::uint64_t bytes() const override { return memory.bytes() + halves.bytes(); }
    void add_halves(Context &context);
    void drop_halves();
};

// Bytes of an order and of its halves.
template <typename T>
std::size_t order_bytes(std::int64_t n, std::int32_t d, bool halves);

// The order of `n` loaded rows at `values`: the one that is there, or a new one. PGKM_LIMIT: there is no room.
template <typename T>
std::shared_ptr<RowOrder<T>> order_of_loaded(Context &context, const T *values, std::int64_t n, std::int32_t d,
                                             int most, bool halves);
// The one that is there, if any.
template <typename T>
std::shared_ptr<RowOrder<T>> find_order(Context &context, const T *values, std::int64_t n, int most);
// That of rows which are not loaded ones.
template <typename T>
std::shared_ptr<RowOrder<T>> order_of_rows(Context &context, const T *values, std::int64_t n, std::int32_t d, int most,
                                           bool halves);

} // namespace pgkm::cuda
