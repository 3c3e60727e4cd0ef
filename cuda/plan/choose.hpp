// choose.hpp - which strategies run when nothing is forced: a pure function of the shape of
// the problem and the facts of the device, so that it can be tested without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "plugin/tuning.hpp"

namespace pgkm::cuda {

// Largest d with a row held in registers, and the clusters that are treated together there.
inline constexpr int register_d = 16;
inline constexpr int octet_size = 8;

// d padded to a size that the register kernels are built for; 0: none.
constexpr int register_size(int d)
{
    for (const int size : {1, 2, 3, 4, 6, 8, 12, 16})
        if (d <= size)
            return size;
    return 0;
}

// Most features of a row in registers where distances are exact (assign/exact_rows.cuh), as far as Aggarwal 2013
// measures.
inline constexpr int exact_register_d = 22;

// Most clusters that a block's memory holds as operands, 32-bit sums of three limbs and the update's workspace
// (fused/strips.cu).
inline constexpr int strips_k = 128;

constexpr bool fits_strips(const Shape &shape, const DeviceFacts &device)
{
    const long long tiles = (shape.k + 31LL) / 32 * 4, products = (shape.d + 15LL) / 16;
    return tiles * (products * 512 + 128) + products * 64 + shape.d * 8 + shape.k * (shape.d + 1LL) * 12 <=
           device.shared_bytes_per_block - 1024;
}

// Rows that the strips kernels take.
constexpr bool strips_take(const Shape &shape, const DeviceFacts &device)
{
    return device.takes(Mechanism::strips) && device.mma && !shape.float64 && !shape.weighted && !shape.counted &&
           device.capability >= 80 && shape.d > register_d && shape.d <= 64 && shape.k <= strips_k && shape.n >= 256 &&
           shape.n < (1LL << 31) && fits_strips(shape, device);
}

// Octets of centroids that fused/few.cu holds: most clusters, and bytes of its queues beside them.
inline constexpr int few_k = 1024;
inline constexpr int few_queue_bytes = 32768;

// float32 rows that fused/few.cu takes.
constexpr bool fits_register(const Shape &shape, const DeviceFacts &device)
{
    const long long octets = (shape.k + octet_size - 1LL) / octet_size;
    return device.takes(Mechanism::few) && !shape.float64 && device.capability >= 80 && shape.d <= register_d &&
           shape.k <= few_k &&
           octets * octet_size * (register_size(shape.d) + 1) * 4 + few_queue_bytes <=
               device.shared_bytes_per_block / 2 - 1024;
}

// Those whose sums it takes along: with more sums the tensor cores and sums apart are faster (16, 256: 0.29 ms an
// iteration against 1.05; d, k).
constexpr bool fits_fused_register(const Shape &shape, const DeviceFacts &device)
{
    return fits_register(shape, device) &&
           43LL * shape.k * (2 * register_size(shape.d) + 1) <= device.shared_bytes_per_block;
}

// Few clusters of rows of many features (assign/wide_rows.cu): most clusters; the fewest features with which it is
// chosen; bytes of its centroids in a block's memory, two blocks to a multiprocessor.
inline constexpr int wide_k = 16;
inline constexpr int wide_d = 65;
constexpr long long wide_bytes(int d, int k)
{
    return (d + 127LL) / 128 * 512 * ((k + 1) / 2 * 2);
}
constexpr bool fits_wide(const Shape &shape, const DeviceFacts &device)
{
    return device.takes(Mechanism::wide) && !shape.float64 && shape.d > register_d && shape.k <= wide_k &&
           wide_bytes(shape.d, shape.k) <= device.shared_bytes_per_block / 2 - 2048;
}

// Tiles of 32 rows as fp16 and four stages of columns: the least that tensor_core works with. The filter on a Hopper
// streams its rows, of any number of features.
constexpr bool fits_tensor_tile(int d, const DeviceFacts &device)
{
    return 32 * ((d + 63LL) / 64 * 64) * 2 + 35840 <= device.shared_bytes_per_block;
}
constexpr bool fits_tensor(const Shape &shape, const DeviceFacts &device)
{
    return device.mma && ((device.capability == 90 && device.wgmma) ||
                          (device.capability >= 80 && fits_tensor_tile(shape.d, device)));
}

// Lists of centroids for the leaves of a tree (fused/leaves.hpp): most features, most centroids, and the fewest
// centroids, rows and pairs of both that repay the order and the lists.
inline constexpr int leaves_d = 8;
inline constexpr int most_leaves_k = 16384;
inline constexpr int leaves_k = 16;
inline constexpr int leaves_n = 1 << 16;
inline constexpr long long leaves_pairs = 1LL << 24;
// Up to so many clusters leaves are for heavy tails alone.
constexpr int tails_k(int d)
{
    return d <= 4 ? 32 : 64;
}

// Columns of few features that a block holds as fp16, tiles of 128 of them (assign/tensor_narrow.cuh): of the most
// features, with their constants.
inline constexpr int narrow_d = 32;
constexpr int narrow_column_bytes(int d)
{
    return (d + 15) / 16 * 32 + 8;
}
constexpr bool fits_narrow(int d, int k, const DeviceFacts &device)
{
    return device.takes(Mechanism::narrow) && d <= narrow_d &&
           (k + 127LL) / 128 * 128 * narrow_column_bytes(d) <= device.shared_bytes_per_block - 1024;
}

// Fewest rows that repay finding those whose label changed, where the assignment runs by itself.
inline constexpr int follow_n = 1 << 15;

// Clusters above which, and fewest terms of distances by which, such columns repay that rows become fp16, where the
// register kernels take sums along (ms a fit of 20 iterations: 1,000,000 x 16, 160: 4.9 against 6.6).
inline constexpr int narrow_k = 96;
inline constexpr double narrow_terms = 0x1p29;

// Few clusters of many features: each thread owns features of all of them (256, 4: 0.16 against
// 0.33 by block_merge and 0.20 by the fused kernel).
constexpr bool partitions_features(const Shape &shape)
{
    return shape.d >= 192 && shape.k <= 64;
}

// Fewest rows, or terms of distances, that repay what the tensor cores' filter prepares.
inline constexpr int tensor_n = 4096;
inline constexpr double tensor_terms = 0x1p28;
// And of rows that a fit takes in strips, for labels alone: a product in tiles of 64 centroids needs no memory for
// rows.
inline constexpr double strips_terms = 0x1p33;
constexpr bool labels_in_tiles(const Shape &shape, const DeviceFacts &device)
{
    return strips_take(shape, device) &&
           static_cast<double>(shape.n) * ((shape.k + 63) / 64 * 64) * shape.d < strips_terms;
}

// Measured over a grid of shapes on an H200 (figures: d, k: ms an iteration); whole fits: bench/fits --strategies 1.
//
// Assignment. Up to 16 features the register kernels win as long as one of them takes sums along; beyond, the tensor
// cores do (8, 2,048: 0.99 against 3.3). Few clusters of many features are the register strategy's again, which rests
// on bounds from one iteration to the next and prepares nothing. What is left is a float32 product in tiles: few rows,
// such as have no tile on the device, and labels alone of rows that a fit takes in strips.
constexpr Assignment choose_assignment(const Shape &shape, const DeviceFacts &device)
{
    const double terms = static_cast<double>(shape.n) * shape.k * shape.d;
    const bool tensor = (shape.n >= tensor_n || terms >= tensor_terms) && fits_tensor(shape, device);
    if (shape.d <= register_d) {
        const bool many = shape.d > leaves_d && shape.k > narrow_k && terms >= narrow_terms;
        if (tensor && !shape.float64 && (many || !fits_fused_register(shape, device)))
            return Assignment::tensor_core;
        if (shape.float64 || fits_register(shape, device))
            return Assignment::register_;
    }
    if (shape.d >= wide_d && fits_wide(shape, device) && (partitions_features(shape) || shape.n >= follow_n))
        return Assignment::register_;
    if (tensor && !labels_in_tiles(shape, device))
        return Assignment::tensor_core;
    return shape.d > register_d && shape.n >= 256 ? Assignment::tiled : Assignment::generic;
}

// One read of the rows is best wherever a fused kernel holds its sums on the chip.
constexpr Execution choose_execution(const Shape &shape, const DeviceFacts &device)
{
    const bool fused = choose_assignment(shape, device) == Assignment::register_ && fits_fused_register(shape, device);
    return fused ? Execution::single_pass : Execution::multi_pass;
}

// A copy of the sums in every block where one window of features holds them all; else rows sorted
// by label need one addition a run (24, 2,048: 0.41 against 0.64 by block_merge and 0.45 by
// atomics), which few rows or features do not repay (8, 2,048: 3.2 against 3.1 by atomics).
// Sums on the chip have no room for rows that stand for several.
constexpr FeatureSum choose_feature_sum(const Shape &shape, const DeviceFacts &device)
{
    if (partitions_features(shape) && !shape.counted)
        return FeatureSum::partitioned_features;
    if (8LL * shape.k * shape.d <= device.shared_bytes_per_block / 2 && !shape.counted)
        return FeatureSum::block_merge;
    return shape.d >= 16 && shape.n >= 131072 ? FeatureSum::sorted : FeatureSum::atomic;
}

constexpr MassSum choose_mass_sum(const Shape &shape, const DeviceFacts &device)
{
    if (8LL * shape.k <= device.shared_bytes_per_block / 2 && !shape.counted)
        return MassSum::partitioned_local;
    return MassSum::global_atomic;
}

// M of Li, Zhao, Chu, Liu 2010: as many rows, then sums, become one. A multiple of the multiprocessors, near their 256.
constexpr int merge_fan_in(const DeviceFacts &device)
{
    return (255 + device.multiprocessors) / device.multiprocessors * device.multiprocessors;
}

constexpr bool fits_leaves(const Shape &shape)
{
    return shape.d <= leaves_d && shape.k >= leaves_k && shape.k <= most_leaves_k && shape.n >= leaves_n &&
           1LL * shape.n * shape.k >= leaves_pairs && shape.n <= (1LL << 31) - 4096;
}

// Most rows change their label in the first iterations alone: after those, an iteration whose
// sums follow the rows has only the assignment to do.
constexpr Moves choose_moves(const Shape &shape, const DeviceFacts &device)
{
    if (shape.float64 || shape.weighted || shape.counted || device.capability < 80)
        return Moves::none;
    if (device.takes(Mechanism::leaves) && fits_leaves(shape))
        return Moves::leaves;
    if (fits_fused_register(shape, device))
        return Moves::few;
    return strips_take(shape, device) ? Moves::strips : Moves::none;
}

// Rows for each that differs, at least, from which on a fit goes by entries (entries/): iterations in which sums follow
// the rows have kernels of their own, and leaves leave out most distances.
constexpr std::int64_t repaying_copies(const Shape &shape, const DeviceFacts &device)
{
    return choose_moves(shape, device) == Moves::none ? 2 : std::max(8, shape.k / 512);
}

constexpr Travel travel_of(Execution execution)
{
    switch (execution) {
    case Execution::serial_chunks:
        return Travel::serial;
    case Execution::co_processing:
        return Travel::shared;
    case Execution::round_trip:
        return Travel::round_trip;
    default:
        return Travel::overlapped;
    }
}

// What a forced execution that says how rows travel means for a pass over rows on the device.
constexpr Execution pass_of(Execution execution)
{
    switch (travel_of(execution)) {
    case Travel::overlapped:
        return execution;
    case Travel::shared:
        return Execution::automatic;
    default:
        return Execution::multi_pass;
    }
}

// What is forced stays, but for single_pass where rows have weights; a forced sum or assignment alone means that stages
// run apart.
constexpr Plan choose(const Shape &shape, const DeviceFacts &device, Forced forced)
{
    const Travel travel = travel_of(forced.execution);
    forced.execution = pass_of(forced.execution);
    Plan plan = {forced.assignment, forced.execution, forced.feature_sum, forced.mass_sum, Moves::none, travel};
    if (plan.execution == Execution::automatic)
        plan.execution = forced.assignment != Assignment::automatic || forced.feature_sum != FeatureSum::automatic ||
                                 forced.mass_sum != MassSum::automatic
                             ? Execution::multi_pass
                             : choose_execution(shape, device);
    if ((shape.weighted || shape.counted) && plan.execution == Execution::single_pass)
        plan.execution = Execution::multi_pass; // fused kernels make sums of one part (device/view.cuh), of single rows
    if (plan.assignment == Assignment::automatic)
        plan.assignment = choose_assignment(shape, device);
    if (plan.feature_sum == FeatureSum::automatic)
        plan.feature_sum = choose_feature_sum(shape, device);
    if (plan.mass_sum == MassSum::automatic)
        plan.mass_sum = choose_mass_sum(shape, device);
    const bool sums_by_choice = forced.feature_sum == FeatureSum::automatic && forced.mass_sum == MassSum::automatic;
    if (forced.assignment == Assignment::automatic) {
        const Moves moves = choose_moves(shape, device);
        const bool ordered = moves == Moves::leaves || moves == Moves::strips;
        if (plan.execution == Execution::single_pass ||
            (ordered && forced.execution == Execution::automatic && sums_by_choice))
            plan.moves = moves;
    }
    if (plan.moves == Moves::none && plan.execution == Execution::multi_pass && travel != Travel::round_trip &&
        device.takes(Mechanism::sorted) &&
        (forced.feature_sum == FeatureSum::sorted || (sums_by_choice && shape.n >= follow_n)))
        plan.moves = Moves::sorted;
    return plan;
}

} // namespace pgkm::cuda
