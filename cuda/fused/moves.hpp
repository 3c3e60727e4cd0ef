// moves.hpp - a whole iteration in few launches: assignment, sums that follow the rows (moves.cuh), and the update.
#pragma once

#include <limits>
#include <type_traits>

#include "plan/stages.hpp"
#include "order/ordered_rows.hpp"
#include "fused/leaves.hpp"
#include "fused/moves.cuh"
#include "sums/update.cuh"

namespace pgkm::cuda {

struct MoveArguments {
    View<float> view;
    const float *shift; // d: the middle of the whole problem's rows; not read where pivots have their own
    float reach;        // at least |x - shift| of every row
    OrderedRows<float> ordered;
    UpdateArguments<float> update;
    KeptLabels last;
    std::int32_t *labels; // where labels alone are wanted: n; else nullptr
    std::int64_t first;   // rows of this launch, within the pivots' order where there is one; or branches of leaves
    std::int64_t end;
    std::int64_t share; // rows per block, where blocks take contiguous ones
    bool floats;        // takes_floats() of all features
    int replicas;       // of the block's sums
    bool finish;        // the update follows
};

// Few features (d <= 16), clusters as many as fit: rows in a thread's registers, centroids in shared memory.
void iterate_few(const Stage<float> &stage, const MoveArguments &arguments);
void label_few(const Stage<float> &stage, const MoveArguments &arguments); // labels alone
// d <= 8, more clusters: rows in the leaves of a tree are compared with the centroids on their leaf's list.
void iterate_leaves(const Stage<float> &stage, const MoveArguments &arguments, const Leaves &leaves);
// 16 < d <= 64, rows ordered by pivots (order/ordered_rows.hpp): products by the tensor cores.
void iterate_strips(const Stage<float> &stage, const MoveArguments &arguments);

// Calls launch(part, blocks) for slices of rows of which no block of `most` gets more than
// its sums can take, and whose values 32 bits can count.
template <typename Launch>
void in_moves(const MoveArguments &arguments, int most, int rows_per_round, Launch &&launch)
{
    const std::int64_t n = arguments.view.n;
    // Slices begin on the borders that wide loads of labels and rows want.
    const std::int64_t countable = std::numeric_limits<std::int32_t>::max() / arguments.view.d / 1024 * 1024;
    const std::int64_t per_launch = std::min(std::int64_t{most} * (move_limit / 2) * arguments.replicas, countable);
    for (std::int64_t done = 0; done < n; done += per_launch) {
        MoveArguments part = arguments;
        const std::int64_t rows = std::min(per_launch, n - done);
        part.view = slice(arguments.view, done, rows);
        part.first = done;
        if (arguments.labels != nullptr)
            part.labels = arguments.labels + done;
        else
            part.last.values = static_cast<char *>(arguments.last.values) + done * (arguments.last.wide ? 2 : 1);
        launch(part, blocks_for(rows, rows_per_round, most));
    }
}

// Launches a kernel over all rows, `bytes` of shared memory for each block.
template <typename... More>
void launch_moves(const Stage<float> &stage, void (*kernel)(MoveArguments, More...), int threads, std::size_t bytes,
                  int rows_per_round, const MoveArguments &a, const std::type_identity_t<More> &...more)
{
    const int most = resident_blocks(stage.context, kernel, threads, bytes);
    in_moves(a, most, rows_per_round, [&](const MoveArguments &part, int blocks) {
        enqueue(kernel, blocks, threads, bytes, stage.stream, part, more...);
    });
}

// Enqueues what ends an iteration where that is wanted: new centroids from sums that stay.
inline void end_iteration(const Stage<float> &stage, const MoveArguments &a)
{
    if (!a.finish)
        return;
    UpdateArguments<float> arguments = a.update;
    arguments.sums_stay = true;
    update(arguments, stage.stream);
}

} // namespace pgkm::cuda
