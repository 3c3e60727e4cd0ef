// greedy.hpp - greedy k-means++ over rows on the device: a filter on the tensor cores leaves out the rows that a trial
// does not bring nearer (filter.cu), so that a step costs one read of the rows in fp16 and few exact distances.
// Errors throw Error: PGKM_CANCELLED, or a fault of the device.
#pragma once

#include <optional>
#include <vector>

#include "order/ordered_rows.hpp"
#include "plugin/context.hpp"
#include "seed/sampler.cuh"
#include "seed/shared_rows.hpp"

namespace pgkm::cuda {

// The positions of the chosen rows, k of them or all that lie apart; nothing where the device has no room for it, or
// rows are too few or too wide.
template <typename T>
std::optional<std::vector<std::int64_t>> greedy_positions(Context &context, const SeedRows<T> &rows, const SeedKey &key,
                                                          std::int32_t k);

// The same of the rows of several peers in their canonical order; weights: of all rows by number, or nullptr. Throws
// PGKM_UNSUPPORTED or PGKM_LIMIT in place of nothing.
template <typename T>
std::vector<std::int64_t> greedy_positions(SharedRows<T> &shared, const std::uint32_t *order, const double *weights,
                                           const PgkmProblem &problem, const SeedKey &key);
// Of memory that each peer lends for it, beside 8 bytes a row.
std::size_t greedy_lent_bytes(std::int64_t own);

// ---- what a step's kernels hand to each other ----

inline constexpr int tile_rows = 16;
inline constexpr float never_open = -1.0f, always_open = 0x1p60f; // reaches; half the square of one is finite

struct GreedyState {
    SeedState seed;
    std::uint32_t open[most_trials]; // rows on each trial's list
    unsigned long long tops;         // rows whose v_i has the exponent of the largest
    std::uint32_t arrived;           // blocks of the kernel at hand that are done
    std::int32_t rescan;             // no row has that exponent any more: the largest v_i is found anew
    std::uint32_t changed;           // rows whose v_i the step has changed, where peers are told of them
};

// What peers are told of a step: positions of rows whose v_i has changed, and the new ones.
struct Changes {
    std::uint32_t *positions; // nullptr: there are no peers
    double *nearest;
};

// What is known of a row and its halves x~ (filter.cu).
struct HalfFacts {
    float reach;  // a trial that lies as far away changes nothing; or never_open, or always_open
    float length; // at least |x~|
    float lost;   // at least |a|
};

// Rows by position; order says where their values are. Where peers have some of them, `own` are this one's, and the
// rest of the n rows has weights, v_i and masses alone. Own rows have a place, too, in the order of their pivots.
template <typename T>
struct GreedyRows {
    const T *values;            // of row 0 by number; own rows alone may be read
    const std::uint32_t *order; // the row at each position; nullptr: rows are their own positions
    const T *picked;            // trials x d: the picked rows, wherever they lie; nullptr: they are own ones
    Changes changes;
    const double *weights;       // by position, or nullptr
    const std::uint16_t *counts; // likewise: how many equal rows each stands for
    double *nearest;             // v_i
    std::int64_t n, own;
    std::int32_t d;
    std::int32_t trials;
    OrderedRows<T> ordered;     // own rows
    std::uint32_t *positions;   // own: of the row at each place
    HalfFacts *facts;           // own: by place
    std::uint32_t *lists;       // trials x own: places of rows that the filter leaves open
    unsigned long long *slices; // masses of seed_slice positions each
    GreedyState *state;
};

// Shared memory that the filter takes.
std::size_t filter_bytes(std::int32_t d, int trials);
// The lists of the step's trials; only enqueued, like what follows.
template <typename T>
void filter_trials(const Context &context, const GreedyRows<T> &rows);

// The step's other kernels, which gains.cu has.
template <typename T>
struct GreedyKernels {
    const Context &context;
    const GreedyRows<T> &rows;

    // v_i of the rows at `count` places from `first` on, from the first row that was picked.
    void begin_nearest(std::int64_t first, std::int64_t count) const;
    // What each trial gains by `count` rows of its list from `first` on; `last`: and chooses.
    void sum_gains(std::int64_t first, std::int64_t count, bool last, std::int64_t *chosen) const;
    // v_i and masses with the chosen row among the centroids.
    void update_nearest() const;
    // The largest v_i and all masses anew, where the step says so.
    void weigh_again() const;
};

} // namespace pgkm::cuda
