// moves.hpp - a whole iteration in one launch or few: assignment, sums that follow the rows
// (moves.cuh) and the update by the last block (finish.cuh).
#pragma once

#include <limits>

#include "plan/stages.hpp"
#include "fused/cells.hpp"
#include "fused/finish.cuh"
#include "fused/moves.cuh"
#include "fused/resting.hpp"

namespace pgkm::cuda {

inline constexpr std::uint8_t no_sole = 0xff;

struct MoveArguments {
    View<float>            view;
    const float           *shift; // of the whole problem's rows; nullptr where groups have their own
    const FilterHead      *head;
    Groups<float>          groups;
    UpdateArguments<float> update;
    KeptLabels             last;
    std::int64_t           first;    // rows of this launch, within the groups' order where there is one
    std::int64_t           end;
    std::int64_t           share;    // rows per block, where blocks take contiguous ones
    bool                   floats;   // takes_floats() of all features
    int                    replicas; // of the block's sums
    bool                   finish;   // the last launch of the iteration
    const CellState       *cells;    // where another kernel takes the iteration if it serves; or nullptr
    std::uint8_t          *sole;     // 2 x groups, by turns: the one centroid on the group's list, or no_sole; or nullptr
};

// Few clusters (k <= 8) and features (d <= 16): a row per thread, centroids in shared memory.
// resting: where rows may rest, or nullptr; the device decides in each iteration whether that serves.
void iterate_few(const Stage<float> &stage, MoveArguments arguments, const RestingCells *resting);
// That iteration where it serves: rows at rest are passed over.
void iterate_few_resting(const Stage<float> &stage, const MoveArguments &arguments, const RestingGrid &grid);
// d <= 16, more clusters: products by the tensor cores, a row's values in the slots of one product.
void iterate_slots(const Stage<float> &stage, MoveArguments arguments);
// d <= 8, many clusters: a row is compared with the centroids on its cell's list. Where lists are
// long, the slots kernel takes the iteration: the device decides.
void iterate_cells(const Stage<float> &stage, MoveArguments arguments, const Cells &cells);
// 16 < d <= 64, groups of rows with lists of centroids (grouping.hpp): products by the tensor cores.
void iterate_strips(const Stage<float> &stage, MoveArguments arguments);
// What a launch that runs all iterations needs beside (replicated_update.cuh).
struct LoopMemory {
    Accumulators        other;    // a second set of sums, equal to the first one
    unsigned long long *arrivals; // two, 0
};
// The same until the fit stops, in one launch, for few rows. False, and nothing is done: not for this shape and device.
bool loop_strips(const Stage<float> &stage, const MoveArguments &arguments, const LoopMemory &memory);
// Most rows of a fit whose iterations run in one launch, which no block's sums may be too many for.
inline std::int64_t alone_rows(const DeviceFacts &facts)
{
    return std::min<std::int64_t>(1 << 20, std::int64_t{facts.multiprocessors} * (move_limit / 2));
}

// Calls launch(part, blocks) for stretches of rows of which no block of `most` gets more than
// its sums can take, and whose values 32 bits can count; the last one finishes the iteration.
template <typename Launch>
void in_moves(const MoveArguments &arguments, int most, int rows_per_round, Launch &&launch)
{
    const std::int64_t n = arguments.view.n;
    // Stretches begin on the borders that wide loads of labels and rows want.
    const std::int64_t countable = std::numeric_limits<std::int32_t>::max() / arguments.view.d / 1024 * 1024;
    const std::int64_t per_launch = std::min(std::int64_t{most} * (move_limit / 2) * arguments.replicas, countable);
    for (std::int64_t done = 0; done < n; done += per_launch) {
        MoveArguments part = arguments;
        const std::int64_t rows = std::min(per_launch, n - done);
        part.view = slice(arguments.view, done, rows);
        part.first = done;
        part.last.values = static_cast<char *>(arguments.last.values) + done * (arguments.last.wide ? 2 : 1);
        part.finish = done + rows == n;
        launch(part, blocks_for(rows, rows_per_round, most));
    }
}

} // namespace pgkm::cuda
