// narrow.cu (fused) - labels and sums in one read of the rows, for groups whose list of
// possible centroids is short (grouping.hpp); float32 rows of up to about 200 features.
//
// A warp copies 32 rows into shared memory, asynchronously and coalesced, and reads them back
// one row per lane: the transposition on the fly of Lutz et al. 2018's Single-Pass. A lane
// keeps the scores of up to 32 centroids in registers; then the warp walks its rows again, one
// feature per lane, for the sums. Only the flush of the sums needs the whole block.
// Filter and margin: those of prepare_groups(). To use: d > 16 and lists of at most 32.
#include <cuda_pipeline.h>

#include "plan/choose.hpp"
#include "device/exact.cuh"
#include "device/limbs.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int replicas = 2;        // copies of the block's sums: half of the warps each
constexpr int slack = 4; // floats behind an array that the compiler may read ahead of the last turn
constexpr int rounds_per_check = 3; // a copy takes at most warps / replicas x 32 rows a round
static_assert(rounds_per_check * warps / replicas * 32 < limb_additions);

struct Arguments {
    View<float>    view;
    Groups<float>  groups;
    const Control *control;
    Accumulators   sums;
    std::int64_t   first, tiles, share; // tiles of this launch, and per block
    int            stride;              // floats from row to row in shared memory, odd
    int            held;                // places of the longest list
    bool           fast;                // biased limbs
};

// The block's shared memory: 32 rows per warp, the group's panel, factors, sums.
struct Shared {
    float        *rows;    // of this warp
    float        *panel;   // d x narrow_list
    float4       *factors; // d: for biased_limbs
    float        *shift;   // d: the group's anchor
    std::int32_t *cells;   // replicas x held x cell_stride
};

// Of a place: d hi limbs, d lo limbs, and the number of rows added since the last flush.
__host__ __device__ int cell_stride(int d) { return 2 * d + 1; }

__device__ Shared carve(const Arguments &a)
{
    extern __shared__ float4 memory[];
    Shared s;
    s.factors = memory;
    s.panel = reinterpret_cast<float *>(memory + a.view.d);
    s.shift = s.panel + a.view.d * narrow_list;
    s.rows = s.shift + a.view.d + slack + static_cast<int>(threadIdx.x / 32) * (32 * a.stride + slack);
    s.cells = reinterpret_cast<std::int32_t *>(s.shift + a.view.d + slack + warps * (32 * a.stride + slack));
    return s;
}

std::size_t shared_bytes(const Arguments &a)
{
    const auto d = static_cast<std::size_t>(a.view.d);
    return d * 20 + d * narrow_list * 4 + static_cast<std::size_t>(slack + warps * (32 * a.stride + slack)) * 4 +
           static_cast<std::size_t>(replicas * a.held * cell_stride(a.view.d)) * 4;
}

// What belongs to one group of rows.
struct Group {
    int                 index, listed;
    const std::int32_t *list;
    const float        *half;
    float               margin;
};

__device__ Group open_group(const Arguments &a, const Shared &shared, int g)
{
    const Groups<float> &groups = a.groups;
    const int d = a.view.d;
    const float *panel = groups.panel + std::int64_t{g} * groups.stride * d;
    for (int i = threadIdx.x; i < d * narrow_list; i += threads)
        shared.panel[i] = panel[std::int64_t{i / narrow_list} * groups.stride + i % narrow_list];
    for (int f = threadIdx.x; f < d; f += threads) {
        const FloatScale scale = float_scale(a.fast ? a.view.feature_exponent[f] : 0);
        shared.factors[f] = make_float4(scale.whole, scale.high, scale.inverse, 0.0f);
        shared.shift[f] = groups.anchors[std::int64_t{g} * d + f];
    }
    return {g, groups.listed[g], groups.list + std::int64_t{g} * a.view.k, groups.half + std::int64_t{g} * groups.stride,
            groups.margin[2 * g]};
}

// Brings the rows of the lanes (row < 0: any row will do) into the warp's memory.
__device__ void load_rows(const Arguments &a, const Shared &shared, std::int32_t row)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = a.view.d;
    const std::int32_t known = max(row, 0);
    float *to = shared.rows + lane;
#pragma unroll 4
    for (int r = 0; r < 32; ++r, to += a.stride) {
        const float *from = a.view.values + std::int64_t{__shfl_sync(~0u, known, r)} * d + lane;
        if (lane < d)
            __pipeline_memcpy_async(to, from, 4);
        if (lane + 32 < d)
            __pipeline_memcpy_async(to + 32, from + 32, 4);
        for (int f = 64; f < d; f += 32)
            if (f + lane < d)
                __pipeline_memcpy_async(to + f, from + f, 4);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
}

// Place of the lane's row in the group's list; `open` when the filter cannot tell.
template <int Columns>
__device__ int filter_row(const Arguments &a, const Shared &shared, const Group &group, bool &open)
{
    const float *x = shared.rows + static_cast<int>(threadIdx.x & 31) * a.stride;
    float product[Columns] = {};
    const float *panel = shared.panel;
#pragma unroll(Columns <= 8 ? 4 : 2)
    for (int f = 0; f < a.view.d; ++f, panel += narrow_list) {
        const float value = x[f] - shared.shift[f];
#pragma unroll
        for (int c = 0; c < Columns; c += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(panel + c);
            product[c] = __fmaf_rn(value, four.x, product[c]);
            product[c + 1] = __fmaf_rn(value, four.y, product[c + 1]);
            product[c + 2] = __fmaf_rn(value, four.z, product[c + 2]);
            product[c + 3] = __fmaf_rn(value, four.w, product[c + 3]);
        }
    }
    float least = INFINITY, second = INFINITY;
    int index = 0;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
        const float score = group.half[c] - product[c];
        second = fminf(second, fmaxf(least, score));
        index = score < least ? c : index;
        least = fminf(least, score);
    }
    open = !(second > least + group.margin) || !(least < INFINITY);
    return index;
}

// Exact places for the open rows of the warp, one after the other; lanes share out the list.
__device__ int settle(const Arguments &a, const Group &group, std::int32_t row, int place, bool open)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    for (unsigned left = __ballot_sync(~0u, open); left != 0; left &= left - 1) {
        const int owner = __ffs(static_cast<int>(left)) - 1;
        const float *x = a.view.values + std::int64_t{__shfl_sync(~0u, row, owner)} * a.view.d;
        Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
        if (lane < group.listed)
            mine = {exact_distance(x, a.view.centroids + std::int64_t{group.list[lane]} * a.view.d, a.view.d), lane};
        mine = nearest_in_warp(mine);
        place = lane == owner ? mine.label : place;
    }
    return place;
}

// Sums of the warp's rows that share a place are made in registers, one feature per lane, and
// leave by one addition per limb (Aggarwal 2013, section 5.1: ballot).
template <bool Fast>
__device__ void add_members(const Arguments &a, const Shared &shared, std::int32_t row, unsigned members,
                            std::int32_t *cell, int first)
{
    const int d = a.view.d, lane = static_cast<int>(threadIdx.x & 31);
    const int f = first + lane, g = f + 32; // two features per lane and turn
    const int safe_f = min(f, d - 1), safe_g = min(g, d - 1);
    const float4 factor_f = shared.factors[safe_f], factor_g = shared.factors[safe_g];
    Split sum_f = {0, 0}, sum_g = {0, 0};
    for (unsigned left = members; left != 0; left &= left - 1) {
        const int r = __ffs(static_cast<int>(left)) - 1;
        Split one, two;
        if (Fast) {
            const float *x = shared.rows + r * a.stride;
            one = biased_limbs(x[safe_f], {factor_f.x, factor_f.y, factor_f.z});
            two = biased_limbs(x[safe_g], {factor_g.x, factor_g.y, factor_g.z});
        } else {
            const std::int32_t from = __shfl_sync(~0u, row, r);
            one = plain_limbs(a.view, from, safe_f);
            two = plain_limbs(a.view, from, safe_g);
        }
        // Biased limbs wrap around on purpose; unsigned, where that is defined.
        sum_f.hi = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum_f.hi) + static_cast<std::uint32_t>(one.hi));
        sum_f.lo = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum_f.lo) + static_cast<std::uint32_t>(one.lo));
        sum_g.hi = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum_g.hi) + static_cast<std::uint32_t>(two.hi));
        sum_g.lo = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum_g.lo) + static_cast<std::uint32_t>(two.lo));
    }
    if (f < d) {
        atomicAdd(cell + f, sum_f.hi);
        atomicAdd(cell + d + f, sum_f.lo);
    }
    if (g < d) {
        atomicAdd(cell + g, sum_g.hi);
        atomicAdd(cell + d + g, sum_g.lo);
    }
}

__device__ void add_rows(const Arguments &a, const Shared &shared, std::int32_t row, int place)
{
    const int d = a.view.d;
    std::int32_t *own = shared.cells + static_cast<int>(threadIdx.x / 32) % replicas * a.held * cell_stride(d);
    for (unsigned left = __ballot_sync(~0u, place >= 0); left != 0;) {
        const int at = __shfl_sync(~0u, place, __ffs(static_cast<int>(left)) - 1);
        const unsigned members = __ballot_sync(~0u, place == at);
        left &= ~members;
        std::int32_t *cell = own + at * cell_stride(d);
        for (int first = 0; first < d; first += 64)
            if (a.fast)
                add_members<true>(a, shared, row, members, cell, first);
            else
                add_members<false>(a, shared, row, members, cell, first);
        if ((threadIdx.x & 31) == 0)
            atomicAdd(cell + 2 * d, __popc(members));
    }
}

// Adds the block's sums of the group to the global ones and clears them.
__device__ void flush(const Arguments &a, const Shared &shared, const Group &group)
{
    const int d = a.view.d, stride = cell_stride(d);
    for (int i = threadIdx.x; i < group.listed * stride; i += threads) {
        const int place = i / stride, component = i - place * stride;
        if (component == 2 * d)
            continue;
        std::int64_t sum = 0;
        for (int copy = 0; copy < replicas; ++copy) {
            std::int32_t *cells = shared.cells + (copy * a.held + place) * stride;
            sum += a.fast ? unbias(cells[component], cells[2 * d]) : cells[component];
            cells[component] = 0;
        }
        const std::int64_t cluster = group.list[place];
        if (sum != 0)
            add64(a.sums.totals + (cluster * d + component % d) * 2 + component / d, sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < replicas * group.listed; i += threads) {
        const int place = i % group.listed;
        std::int32_t *count = shared.cells + (i / group.listed * a.held + place) * stride + 2 * d;
        if (*count != 0)
            add64(a.sums.masses + 2 * std::int64_t{group.list[place]} + 1, *count);
        *count = 0;
    }
    __syncthreads();
}

__device__ bool nearly_full(const Arguments &a, const Shared &shared, const Group &group)
{
    __syncthreads(); // the counts of all warps: one may still be at an earlier round, settling rows
    bool full = false;
    for (int i = threadIdx.x; i < replicas * group.listed; i += threads)
        full |= shared.cells[(i / group.listed * a.held + i % group.listed) * cell_stride(a.view.d) + 2 * a.view.d] >
                limb_additions - rounds_per_check * warps / replicas * 32;
    return __syncthreads_or(full) != 0;
}

// Rows [first, end) of the order, all of one group.
__device__ void take_rows(const Arguments &a, const Shared &shared, const Group &group, std::int64_t first,
                          std::int64_t end)
{
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    int round = 0;
    for (std::int64_t start = first; start < end; start += threads, ++round) {
        if (round == rounds_per_check) {
            round = 0;
            if (nearly_full(a, shared, group))
                flush(a, shared, group);
        }
        const std::int64_t at = start + warp * 32 + lane;
        if (start + warp * 32 >= end)
            continue;
        const std::int32_t row = at >= end ? -1 : a.groups.order != nullptr ? a.groups.order[at] : static_cast<std::int32_t>(at);
        load_rows(a, shared, row);
        bool open = false;
        int place = group.listed <= 4   ? filter_row<4>(a, shared, group, open)
                    : group.listed <= 8 ? filter_row<8>(a, shared, group, open)
                    : group.listed <= 16 ? filter_row<16>(a, shared, group, open)
                                         : filter_row<32>(a, shared, group, open);
        place = settle(a, group, row, place, open && row >= 0);
        add_rows(a, shared, row, row < 0 ? -1 : place);
        __syncwarp();
    }
    __syncthreads();
    flush(a, shared, group);
}

__global__ void __launch_bounds__(threads, 2) narrow_kernel(Arguments a)
{
    if (block_stopped(a.control))
        return;
    const Shared shared = carve(a);
    const Groups<float> &groups = a.groups;
    for (int i = threadIdx.x; i < replicas * a.held * cell_stride(a.view.d); i += threads)
        shared.cells[i] = 0;
    a.fast = true;
    for (int f = 0; f < a.view.d; ++f)
        a.fast = a.fast && has_float_scale(a.view.feature_exponent[f]);
    std::int64_t tile = a.first + blockIdx.x * a.share;
    const std::int64_t last = min(tile + a.share, a.tiles);
    int g = 0;
    while (tile < last) {
        std::int64_t group_first = 0, group_end = a.tiles, row0 = 0, rows_end = a.view.n;
        if (groups.first_tile != nullptr) {
            while (groups.first_tile[g + 1] <= tile)
                ++g;
            group_first = groups.first_tile[g];
            group_end = groups.first_tile[g + 1];
            row0 = groups.first_row[g];
            rows_end = groups.first_row[g + 1];
        }
        const std::int64_t stop = min(last, group_end);
        if (groups.listed[g] <= narrow_list) { // longer lists: the tiled kernel's affair
            __syncthreads();
            const Group group = open_group(a, shared, g);
            __syncthreads();
            take_rows(a, shared, group, row0 + (tile - group_first) * tile_rows,
                      min(rows_end, row0 + (stop - group_first) * tile_rows));
        }
        tile = stop;
    }
}

} // namespace

void fused_narrow(const Stage<float> &stage, const View<float> &view, const Accumulators &sums)
{
    Arguments a = {view, stage.groups, stage.control, sums, 0, 0, 0, view.d | 1, std::min(view.k, narrow_list), false};
    const std::size_t bytes = shared_bytes(a);
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(narrow_kernel, static_cast<int>(bytes));
    });
    int per_unit = 0;
    checked("cudaOccupancy", [&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, narrow_kernel, threads, bytes);
    });
    const std::int64_t tiles = a.groups.first_tile == nullptr ? (view.n + tile_rows - 1) / tile_rows : a.groups.tiles;
    const std::int64_t most = std::int64_t{stage.context.facts.multiprocessors} * std::max(per_unit, 1);
    const auto per_launch = std::max<std::int64_t>(static_cast<std::int64_t>(1e12 / (20.0 * view.d * tile_rows)), most);
    for (std::int64_t done = 0; done < tiles; done += per_launch) {
        const std::int64_t count = std::min(per_launch, tiles - done);
        a.share = (count + most - 1) / most;
        a.first = done;
        a.tiles = done + count;
        narrow_kernel<<<static_cast<unsigned>((count + a.share - 1) / a.share), threads, bytes, stage.stream>>>(a);
        launched("narrow_kernel");
    }
    if (view.k > narrow_list)
        fused_tiled(stage, view, sums, narrow_list);
}

} // namespace pgkm::cuda
