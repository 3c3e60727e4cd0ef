// tensor_hopper.cuh - the filter of assign_tensor on a Hopper: wgmma fed by TMA, one pass over the columns.
//
// Shape: prepared rows (fp16, in the order of their pivots) times the columns of the rows' pivot. A block takes a tile
// of rows of one pivot after the other, and of the columns the bundles that aim_kernel lists for it. One warp brings
// tiles and columns by TMA into a ring of stages (128-byte swizzle, 64 features a stage); two or three warpgroups
// multiply, each its share of the tile's rows by all columns of a stage. Full and empty barriers in shared memory pass
// the stages on, so that copies, products and scores of different stages overlap. Up to 256 features the rows of a tile
// stay in shared memory; beyond, they are streamed along with the columns.
//
// Each row has a limit: a score (tensor.cu) that the nearest centroid's cannot exceed. It falls as better columns are
// met (tensor_limits.cuh), those of the last labels first. What lies within the limit goes on the row's list in shared
// memory (tensor_lists.cuh). The least scores of the bundles make the gaps, by which later passes leave bundles out.
#pragma once

#include "assign/tensor_lists.cuh"
#include "device/wgmma.cuh"
#include "plugin/tensor_map.hpp"

namespace pgkm::cuda::tensor {
namespace {

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Never launched: hopper_usable() looks for the other one.
template <typename T, typename S>
__global__ void filter_kernel(const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap, View<T>,
                              const Control *, Layout<T>, int)
{
}

#else

// One thread: tiles, rows and columns.
template <typename T, typename S>
__device__ inline void bring(const CUtensorMap *rows, const CUtensorMap *columns, const Control *control,
                             const Layout<T> &l, const HopperBlock<S> &block, int tiles)
{
    const int steps = (l.d32 + 63) / 64;
    unsigned s = 0, phase = 1, tile_phase = 1;
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x), tile_phase ^= 1) {
        const bool ends = t >= tiles || stopped(control) || l.tiles[t].group < 0;
        wait_barrier(block.rows_empty(), tile_phase);
        atomicExch(&block.tile(), ends ? -1 : t); // an atomic, since racecheck does not see what barriers order
        if (ends)
            return arrive(block.rows_full());
        const TileFacts tile = l.tiles[t];
        if constexpr (S::steps > 0) {
            arrive_expecting(block.rows_full(), steps * S::row_bytes);
            for (int f = 0; f < steps; ++f)
                copy_box(block.base + f * S::row_bytes, rows, block.rows_full(), f * 64, tile.first);
        } else {
            arrive(block.rows_full());
        }
        const int first = tile.group * l.columns;
        const std::int32_t *wanted = l.wanted + std::int64_t{t} * l.bundles;
        for (int c = 0; c < tile.wanted; c += S::bundles) {
            const int bundles = min(S::bundles, tile.wanted - c);
            int line[S::bundles];
#pragma unroll
            for (int i = 0; i < S::bundles; ++i)
                line[i] = first + wanted[c + min(i, bundles - 1)] * bundle_size;
            for (int f = 0; f < steps; ++f) {
                wait_barrier(block.empty(s), phase);
                arrive_expecting(block.full(s), bundles * bundle_bytes + (S::steps == 0 ? S::row_bytes : 0));
#pragma unroll
                for (int i = 0; i < S::bundles; ++i)
                    if (i < bundles)
                        copy_box(block.stage(s) + i * bundle_bytes, columns, block.full(s), f * 64, line[i]);
                if constexpr (S::steps == 0)
                    copy_box(block.stage(s) + S::column_bytes, rows, block.full(s), f * 64, tile.first);
                if (++s == S::stages) {
                    s = 0;
                    phase ^= 1;
                }
            }
        }
    }
}

// The four lanes of a row have Mine rows in common, and each the least of its own columns. Gives lane q the least of
// all four for row q % Mine, in each of Count bundles.
template <int Mine, int Count>
__device__ inline void least_of_lanes(const float (&least)[Mine][Count], float (&of_row)[Count])
{
    static_assert(Mine == 2 || Mine == 4);
    const bool odd = (threadIdx.x & 1) != 0, upper = (threadIdx.x & 2) != 0;
    float two[2][Count];
#pragma unroll
    for (int q = 0; q < Count; ++q)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            two[i][q] = least[i][q];
            if constexpr (Mine == 4)
                two[i][q] = fminf(upper ? least[i + 2][q] : least[i][q],
                                  __shfl_xor_sync(~0u, upper ? least[i][q] : least[i + 2][q], 2));
        }
#pragma unroll
    for (int q = 0; q < Count; ++q) {
        of_row[q] = fminf(odd ? two[1][q] : two[0][q], __shfl_xor_sync(~0u, odd ? two[0][q] : two[1][q], 1));
        if constexpr (Mine == 2)
            of_row[q] = fminf(of_row[q], __shfl_xor_sync(~0u, of_row[q], 2));
    }
}

// One of a lane's eight scores of a bundle.
__device__ inline float pick_score(const float *x, int j)
{
    const bool odd = (j & 1) != 0, second = (j & 2) != 0, upper = (j & 4) != 0;
    const float a = odd ? x[1] : x[0], b = odd ? x[5] : x[4], c = odd ? x[9] : x[8], d = odd ? x[13] : x[12];
    return upper ? (second ? d : c) : (second ? b : a);
}

// Puts those of a lane's eight scores of a bundle that lie within the limit on its row's list: most often one.
template <typename S>
__device__ inline void list_scores(const HopperBlock<S> &block, int row, const float *x, float most, int position)
{
    static_assert(bundle_size == 32);
    unsigned within = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j)
        within |= x[j / 2 * 4 + j % 2] <= most ? 1u << j : 0u;
    int slot = atomicAdd(block.counts() + row, __popc(within));
    for (; within != 0; within &= within - 1, ++slot) {
        const int j = __ffs(static_cast<int>(within)) - 1;
        if (slot < list_slots)
            block.list(row)[slot] = {pick_score(x, j), position + j / 2 * 8 + j % 2};
    }
}

template <typename T, typename S>
__global__ void __launch_bounds__(S::threads, 1)
    filter_kernel(const __grid_constant__ CUtensorMap rows, const __grid_constant__ CUtensorMap columns, View<T> view,
                  const Control *control, Layout<T> l, int tiles)
{
    extern __shared__ char raw[];
    const HopperBlock<S> block(raw);
    if (block_stopped(control))
        return;
    constexpr int warps = S::groups * 4, mine = 2 * S::blocks_of_64; // rows of a thread
    if (threadIdx.x < S::stages) {
        init_barrier(block.full(threadIdx.x), 1);
        init_barrier(block.empty(threadIdx.x), warps);
    }
    if (threadIdx.x == 0) {
        init_barrier(block.rows_full(), 1);
        init_barrier(block.rows_empty(), warps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    if (warpgroup == S::groups) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == S::groups * 128)
            bring<T, S>(&rows, &columns, control, l, block, tiles);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(S::groups == 2 ? 232 : 152));
        const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32;
        const auto join = [&] { asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory"); };
        const auto row_of = [&](int i) {
            return warpgroup * S::group_rows + i / 2 * 64 + t / 32 * 16 + lane / 4 + i % 2 * 8;
        };
        const int steps = (l.d32 + 63) / 64,
                  last = (l.d32 - (steps - 1) * 64) / 16; // sixteens of the last step: two or four
        const bool tracks = l.gaps != nullptr && l.progress->tracked > 0;
        unsigned s = 0, phase = 0, tile_phase = 0;
        int turn = 1; // also from tile to tile: warps of a warpgroup are at most a step apart
        for (;; tile_phase ^= 1) {
            wait_barrier(block.rows_full(), tile_phase);
            const int number = __shfl_sync(~0u, lane == 0 ? atomicAdd(&block.tile(), 0) : 0, 0);
            if (number < 0)
                break;
            const TileFacts tile = l.tiles[number];
            // The row that this lane sees to; of the lanes that share it the first keeps its list.
            const int at = row_of(lane % mine);
            const bool there = at < tile.count, keeps = lane % 4 < mine;
            const Slack slack = l.slack[tile.first + (there ? at : 0)];
            const Margins margins(tile, view.d);
            float limit = there ? infinity() : -infinity(), own = infinity();
            const std::int32_t *wanted = l.wanted + std::int64_t{number} * l.bundles;
            // The columns that this thread prepares the scores of, fetched a step ahead; their bundles two steps ahead.
            constexpr int each = S::columns / 128;
            std::int32_t base[each], next[each];
            Column column[each];
            const auto fetch_base = [&](int c, int j) {
                const int bundle = c + (t + j * 128) / bundle_size;
                next[j] = bundle < tile.wanted ? wanted[bundle] * bundle_size : -1;
            };
            const auto fetch_column = [&](int j) {
                base[j] = next[j];
                column[j] = {infinity(), 0.0f};
                if (base[j] >= 0)
                    column[j] = l.column[std::int64_t{tile.group} * l.columns + base[j] + t % bundle_size];
            };
#pragma unroll
            for (int j = 0; j < each; ++j) {
                fetch_base(0, j);
                fetch_column(j);
                fetch_base(S::bundles, j);
            }
            if (keeps)
                block.counts()[at] = 0;
            for (int c = 0; c < tile.wanted; c += S::bundles) {
                const int bundles = min(S::bundles, tile.wanted - c);
                turn ^= 1;
                float *left = block.left(warpgroup, turn);
                std::int32_t *bases = block.bases(warpgroup, turn);
#pragma unroll
                for (int j = 0; j < each; ++j) {
                    left[t + j * 128] = fmaf(-tile.widening, column[j].weight, column[j].norm);
                    if (t % bundle_size == 0)
                        bases[(t + j * 128) / bundle_size] = base[j];
                    fetch_column(j);
                    fetch_base(c + 2 * S::bundles, j);
                }
                float acc[S::blocks_of_64][S::columns / 2];
                int before = -1;
                for (int f = 0; f < steps; ++f) {
                    wait_barrier(block.full(s), phase);
                    const unsigned b = block.stage(s);
                    const unsigned a = (S::steps > 0 ? block.base + f * S::row_bytes : b + S::column_bytes) +
                                       warpgroup * S::group_rows * 128;
                    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                    const auto sixteen = [&](int q) {
#pragma unroll
                        for (int m = 0; m < S::blocks_of_64; ++m)
                            multiply(acc[m], descriptor(a + m * 8192 + q * 32), descriptor(b + q * 32), f > 0 || q > 0);
                    };
                    sixteen(0);
                    sixteen(1);
                    if (f + 1 < steps || last == 4) {
                        sixteen(2);
                        sixteen(3);
                    }
                    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                    if (before >= 0) {
                        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                        if (lane == 0)
                            arrive(block.empty(before));
                    }
                    before = static_cast<int>(s);
                    if (++s == S::stages) {
                        s = 0;
                        phase ^= 1;
                    }
                }
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                __syncwarp(); // lane 0 speaks for what the whole warp has read
                if (lane == 0) {
                    arrive(block.empty(before));
                    if (c + S::bundles >= tile.wanted && S::steps > 0)
                        arrive(block.rows_empty());
                }
                join(); // what the scores start from is there
                const float2 *starts = reinterpret_cast<const float2 *>(left) + lane % 4;
                constexpr int strips = bundle_size / 8; // of eight columns, two of them this thread's
                float least[mine][S::bundles];
#pragma unroll
                for (int q = 0; q < S::bundles; ++q) {
                    float2 start[strips];
#pragma unroll
                    for (int j = 0; j < strips; ++j)
                        start[j] = starts[(q * strips + j) * 4];
#pragma unroll
                    for (int i = 0; i < mine; ++i) {
                        float *x = &acc[i / 2][q * strips * 4 + i % 2 * 2];
                        least[i][q] = infinity();
#pragma unroll
                        for (int j = 0; j < strips; ++j) {
                            x[j * 4] = fmaf(x[j * 4], -2.0f, start[j].x);
                            x[j * 4 + 1] = fmaf(x[j * 4 + 1], -2.0f, start[j].y);
                            least[i][q] = fminf(least[i][q], fminf(x[j * 4], x[j * 4 + 1]));
                        }
                    }
                }
                const auto lower = [&](float score) {
                    if (!(score < limit))
                        return;
                    const Limit found = margins.limit(score, slack);
                    limit = fminf(limit, found.score);
                    own = fminf(own, found.own);
                };
                if (tracks) {
                    float of_row[S::bundles], best = infinity();
                    least_of_lanes(least, of_row);
#pragma unroll
                    for (int q = 0; q < S::bundles; ++q)
                        best = fminf(best, of_row[q]);
                    lower(best);
                    int gap = 0;
#pragma unroll
                    for (int q = 0; q < S::bundles; ++q) {
                        const int bits = there ? margins.gap_bits(of_row[q], own, slack) : 0x7f800000;
                        const int of_warp = __reduce_min_sync(~0u, bits);
                        gap = lane == q ? of_warp : gap;
                    }
                    if (lane < bundles)
                        atomicMin(reinterpret_cast<int *>(l.gaps + std::int64_t{number} * l.bundles +
                                                          bases[lane] / bundle_size),
                                  gap);
                } else {
                    float of_lane[mine][1], best[1];
#pragma unroll
                    for (int i = 0; i < mine; ++i) {
                        of_lane[i][0] = least[i][0];
#pragma unroll
                        for (int q = 1; q < S::bundles; ++q)
                            of_lane[i][0] = fminf(of_lane[i][0], least[i][q]);
                    }
                    least_of_lanes(of_lane, best);
                    lower(best[0]);
                }
                // A row's list is this quad's alone. Rows whose lists run over are listed again, below a lower limit.
                const int earlier = block.counts()[at];
                for (unsigned listed = ~0u; listed != 0;) {
#pragma unroll
                    for (int i = 0; i < mine; ++i) {
                        const int owner = (lane & 28) + i;
                        float most = __shfl_sync(~0u, limit, owner);
                        most = (listed >> owner & 1) != 0 ? most : -infinity();
#pragma unroll
                        for (int q = 0; q < S::bundles; ++q) {
                            if (!(least[i][q] <= most))
                                continue;
                            list_scores(block, row_of(i), &acc[i / 2][q * strips * 4 + i % 2 * 2], most,
                                        bases[q] + lane % 4 * 2);
                        }
                    }
                    __syncwarp();
                    bool again =
                        (listed >> lane & 1) != 0 && keeps && earlier <= list_slots && block.counts()[at] > list_slots;
                    if (again)
                        again = make_room(view, l, tile, block, at, earlier, limit);
                    listed = __ballot_sync(~0u, again);
                    __syncwarp();
                }
                // Lists grow with the number of times that the columns seen have doubled.
                const int seen = c / S::bundles + 1;
                if (keeps && (seen & (seen - 1)) == 0 && c + S::bundles < tile.wanted)
                    shorten(block, at, limit);
            }
            __syncwarp();
            if (lane == 0 && (S::steps == 0 || tile.wanted == 0))
                arrive(block.rows_empty());
            conclude(view, l, tile, block, at, keeps && there, limit);
            __syncwarp();
        }
    }
}

#endif
template <typename T, typename S>
void hopper_pass(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    const auto kernel = filter_kernel<T, S>;
    const int tiles = static_cast<int>((view.n + S::rows - 1) / S::rows) + most_pivots;
    enqueue(aim_kernel<T, S::rows>, tiles, 256, 0, stage.stream, view, stage.control, l);
    const CUtensorMap rows = tensor_map(l.rows.halves, view.n, l.rows.d8, S::rows);
    const CUtensorMap columns = tensor_map(l.table, std::int64_t{l.groups} * l.columns, l.d32, bundle_size);
    enqueue(kernel, stage.context.facts.multiprocessors, S::threads, S::bytes, stage.stream, rows, columns, view,
            stage.control, l, tiles);
    const std::size_t bytes = measure_threads / 32 * Pairs<T>::bytes(view.d);
    const int blocks = resident_blocks(stage.context, measure_kernel<T>, measure_threads, bytes);
    enqueue(measure_kernel<T>, blocks, measure_threads, bytes, stage.stream, view, stage.control, l);
}

// Whether the kernel was compiled for this very generation.
template <typename T>
bool hopper_usable(const Context &context)
{
    if (context.facts.capability != 90 || !context.facts.wgmma)
        return false;
    static const bool compiled = [] {
        cudaFuncAttributes attributes;
        checked("cudaFuncGetAttributes",
                [&] { return cudaFuncGetAttributes(&attributes, filter_kernel<T, HopperShape<3, 64, 128, 2, 7>>); });
        return attributes.ptxVersion >= 90;
    }();
    return compiled;
}

template <typename T>
void hopper_filter(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    if (l.d32 > 256)
        hopper_pass<T, HopperShape<2, 64, 256, 0, 4>>(stage, view, l);
    else if (l.d32 <= 128)
        hopper_pass<T, HopperShape<3, 64, 128, 2, 7>>(stage, view, l);
    else
        hopper_pass<T, HopperShape<2, 128, 128, 4, 3>>(stage, view, l);
}

} // namespace
} // namespace pgkm::cuda::tensor
