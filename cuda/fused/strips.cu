// strips.cu (fused) - an iteration over float32 rows of 17 to 64 features whose scores are
// products of the tensor cores (halves.cuh), for grouped rows (grouping.hpp), sums that follow
// the rows.
//
// A block takes pieces of the groups' order. For each group in them, it lists the centroids
// that can be nearest to one of its rows and splits them around the group's anchor. Its warps
// then take strips of 16 rows by themselves: a lane loads four features of rows l / 4 and
// l / 4 + 8 per 16-deep product straight from global memory (which feature takes which slot of
// the product does not matter as long as both sides agree), so that rows pass through no shared
// memory and no barrier. To use: k up to 128 and sums that fit the block's memory.
#include "../choose.hpp"
#include "strips_group.cuh"

namespace pgkm::cuda {
namespace {

// Four values of a row; beyond d they are zero.
template <int W>
__device__ void load_four(const float *row, int c, int d, float (&value)[4])
{
    const int q = static_cast<int>(threadIdx.x & 3);
#pragma unroll
    for (int w = 0; w < 4; w += W) {
        const int f = feature_of<W>(c, q, w);
        if constexpr (W == 4) {
            const float4 four = f < d ? __ldg(reinterpret_cast<const float4 *>(row + f)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            value[0] = four.x;
            value[1] = four.y;
            value[2] = four.z;
            value[3] = four.w;
        } else if constexpr (W == 2) {
            const float2 two = f < d ? __ldg(reinterpret_cast<const float2 *>(row + f)) : make_float2(0.0f, 0.0f);
            value[w] = two.x;
            value[w + 1] = two.y;
        } else {
            value[w] = f < d ? __ldg(row + f) : 0.0f;
        }
    }
}

// The rows' side of the products: x1 and x2 of a strip.
template <int C>
struct Rows {
    unsigned high[C][4];
    unsigned low[C][4];
};

template <int C, int W>
__device__ void load_rows(const MoveArguments &a, const Shared &shared, const std::int32_t (&row)[2], float scale, Rows<C> &rows)
{
    float value[2][C][4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int c = 0; c < C; ++c)
            load_four<W>(a.view.values + std::int64_t{row[h]} * a.view.d, c, a.view.d, value[h][c]);
#pragma unroll
    for (int c = 0; c < C; ++c) {
        const float4 shift = shared.shift[c * 4 + (threadIdx.x & 3)];
        const float shifts[4] = {shift.x, shift.y, shift.z, shift.w};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int w = 0; w < 4; w += 2) {
                const float first = __fmaf_rn(value[h][c][w], scale, -shifts[w]);
                const float second = __fmaf_rn(value[h][c][w + 1], scale, -shifts[w + 1]);
                const __half2 high = __floats2half2_rn(first, second);
                const float2 back = __half22float2(high);
                rows.high[c][w + h] = *reinterpret_cast<const unsigned *>(&high);
                rows.low[c][w + h] = pack_halves(first - back.x, second - back.y);
            }
        }
    }
}

// Scores of the strip against T tiles from `first` on; the large products, the small ones and the
// constant add up apart, which keeps the error small.
template <int C, int T>
__device__ void multiply(const Shared &shared, const Rows<C> &rows, int first, float (&score)[T][4])
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    float small[T][4];
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
        for (int t = 0; t < T; ++t) {
            const uint4 b = shared.operands[((first + t) * C + c) * 32 + lane];
            if (c == 0) {
                start_product(score[t], rows.high[c], b.x, b.y);
                start_product(small[t], rows.low[c], b.x, b.y);
            } else {
                tensor::multiply_fp16(score[t], rows.high[c], b.x, b.y);
                tensor::multiply_fp16(small[t], rows.low[c], b.x, b.y);
            }
            tensor::multiply_fp16(small[t], rows.high[c], b.z, b.w);
        }
#pragma unroll
    for (int t = 0; t < T; ++t) {
        const float2 constant = *reinterpret_cast<const float2 *>(shared.constant + (first + t) * 8 + 2 * (lane & 3));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            score[t][i] += small[t][i] + (i % 2 == 0 ? constant.x : constant.y);
    }
}

template <int T>
__device__ void take_least(const float (&score)[T][4], int (&least)[2])
{
#pragma unroll
    for (int t = 0; t < T; ++t)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            least[h] = least_bits(least[h], score[t][2 * h], score[t][2 * h + 1]);
}

// The lane's own candidates among `tiles` tiles, T at a time; T tiles are multiplied once.
template <int C, int T>
__device__ void filter(const Shared &shared, const Rows<C> &rows, int tiles, float margin, unsigned (&own)[2])
{
    float score[T][4];
    int least[2] = {INT_MAX, INT_MAX};
    for (int first = 0; first < tiles; first += T) {
        multiply<C, T>(shared, rows, first, score);
        take_least<T>(score, least);
    }
    float threshold[2];
    for (int h = 0; h < 2; ++h) {
        threshold[h] = __int_as_float(least_of_quad(least[h])) + margin;
        own[h] = 0;
    }
    for (int first = tiles - T; first >= 0; first -= T) { // the last tiles' scores are still there
        if (first < tiles - T)
            multiply<C, T>(shared, rows, first, score);
#pragma unroll
        for (int h = 0; h < 2; ++h)
            own[h] |= mark_candidates<T>(score, h, threshold[h]) << (2 * first);
    }
}

// The squared distance of the quad's row from a centroid, in an order of its own; float64.
__device__ inline double rough_distance(const float *x, const float *c, int d)
{
    double sum = 0.0;
#pragma unroll 4
    for (int f = static_cast<int>(threadIdx.x & 3); f < d; f += 4) {
        const double difference = static_cast<double>(x[f]) - static_cast<double>(c[f]);
        sum = ::fma(difference, difference, sum);
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
}

// Labels of the warp's open rows, a quad each: float64 distances to the candidates, and the
// contract's own to all centroids where those are too near to each other.
__device__ __noinline__ int settle(const MoveArguments &a, const std::int32_t *list, std::int32_t row, int label,
                                   unsigned candidates, bool usable)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = a.view.d;
    // Both sums are of the same rounded differences, in at most d + 5 roundings of 2^-53.
    const double slack = 1.0 + 4.0 * static_cast<double>(d + 8) * 0x1p-53;
    const float *x = a.view.values + std::int64_t{row} * d;
    double best = INFINITY, second = INFINITY;
    int nearest = 0;
    const bool open = label < 0;
    for (int q = 0; q < 4; ++q) {
        unsigned mask = __shfl_sync(~0u, open && usable ? candidates : 0u, (lane & ~3) + q);
        while (__any_sync(~0u, mask != 0)) {
            const int j = list[mask == 0 ? 0 : column_of(__ffs(static_cast<int>(mask)) - 1, q)];
            const double measured = rough_distance(x, a.view.centroids + std::int64_t{j} * d, d);
            const double distance = mask == 0 ? INFINITY : measured;
            second = fmin(second, fmax(best, distance));
            nearest = distance < best ? j : nearest;
            best = fmin(best, distance);
            mask &= mask - 1;
        }
    }
    if (open)
        label = second > best * slack + 0x1p-1000 ? nearest : -1; // below that, underflow counts
    return settle_rows(a.view, row, label);
}

// A row's values of the features that a lane sees to, `lane` and `lane` + 32.
__device__ inline float2 load_pair(const MoveArguments &a, std::int32_t row)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = a.view.d;
    const float *values = a.view.values + std::int64_t{row} * d + lane;
    return {lane < d ? values[0] : 0.0f, lane + 32 < d ? values[32] : 0.0f};
}

__device__ inline void add_limbs(Limbs15 &sum, const Limbs15 &limbs)
{
    sum.high += limbs.high;
    sum.middle += limbs.middle;
    sum.low += limbs.low;
}

// Moves the rows of a warp whose label changed, lanes over the features. Those that take the same way
// are added up in registers first: neighbours in the groups' order mostly do. A cell's limbs stay
// within those of as many additions as rows.
__device__ __noinline__ void move_rows(const MoveArguments &a, const MoveCells &cells, std::int32_t row, int from, int to,
                                       unsigned moved)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = a.view.d, none = a.last.none();
    const float scale = feature_scale(a.view, min(lane, d - 1), a.floats);
    const float upper_scale = feature_scale(a.view, min(lane + 32, d - 1), a.floats);
    if (a.view.weights != nullptr && (moved >> lane & 1))
        cells.move_mass(a.view, from, to, none, row, 0);
    while (moved != 0) {
        int member = __ffs(static_cast<int>(moved)) - 1;
        const int source = __shfl_sync(~0u, from, member), target = __shfl_sync(~0u, to, member);
        unsigned alike = moved & __ballot_sync(~0u, from == source && to == target);
        moved &= ~alike;
        const int count = __popc(alike);
        Limbs15 lower = {}, upper = {};
        std::int32_t next = __shfl_sync(~0u, row, member);
        float2 ahead = load_pair(a, next);
        do {
            const float2 x = ahead;
            const std::int32_t moving = next;
            alike &= alike - 1;
            if (alike != 0) {
                next = __shfl_sync(~0u, row, __ffs(static_cast<int>(alike)) - 1);
                ahead = load_pair(a, next);
            }
            add_limbs(lower, feature_limbs15(a.view, moving, min(lane, d - 1), x.x, scale, a.floats));
            if (d > 32)
                add_limbs(upper, feature_limbs15(a.view, moving, min(lane + 32, d - 1), x.y, upper_scale, a.floats));
        } while (alike != 0);
        if (lane < d)
            cells.move(source, target, none, lane, lower, 0);
        if (lane + 32 < d)
            cells.move(source, target, none, lane + 32, upper, 0);
        if (a.view.weights == nullptr && lane == 0)
            cells.move(source, target, none, d, {0, 0, count}, 0);
    }
}

// The two rows of a strip whose values a lane loads, and the place of the one it sees to when the
// candidates are known: its first for even lanes, its second for odd ones (two lanes each).
struct Strip {
    std::int32_t row[2];
    int          place; // in the groups' order
    int          last;  // label
};

// Beyond the end: any row will do.
__device__ void find_strip(const MoveArguments &a, int first, int end, Strip &strip)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int place = min(first + h * 8 + lane / 4, end - 1);
        strip.row[h] = a.groups.order != nullptr ? a.groups.order[place] : place;
    }
    strip.place = min(first + (lane & 1) * 8 + lane / 4, end - 1);
    strip.last = static_cast<const std::uint8_t *>(a.last.values)[strip.place]; // strips_k < 255
}

// Starts the rows' way from memory to the second-level cache: 64 bytes per lane.
__device__ void prefetch_strip(const MoveArguments &a, const Strip &strip)
{
    const int q = static_cast<int>(threadIdx.x & 3);
    for (int h = 0; h < 2; ++h)
        if (q * 16 < a.view.d)
            tensor::prefetch_line(a.view.values + std::int64_t{strip.row[h]} * a.view.d + q * 16);
}

template <int C, int W>
__device__ void take_strip(const MoveArguments &a, const Shared &shared, const MoveCells &cells, const Group &group,
                           const Strip &strip, const Strip &next, int first, int end)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    Rows<C> rows;
    load_rows<C, W>(a, shared, strip.row, group.scale.scale, rows);
    unsigned own[2];
    if (tiles_of(group.listed) == 1)
        filter<C, 1>(shared, rows, 1, group.scale.margin, own);
    else if (tiles_of(group.listed) == 2)
        filter<C, 2>(shared, rows, 2, group.scale.margin, own);
    else
        filter<C, 4>(shared, rows, tiles_of(group.listed), group.scale.margin, own);
    prefetch_strip(a, next);
    const int odd = lane & 1, sums[2] = {candidates_of(own[0]), candidates_of(own[1])};
    int sum = (odd ? sums[1] : sums[0]) + __shfl_xor_sync(~0u, odd ? sums[0] : sums[1], 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int sole = group.scale.usable ? sole_candidate(sum) : -1;
    int label = sole < 0 ? -1 : shared.list[sole];
    if (__any_sync(~0u, label < 0)) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int mine = __shfl_sync(~0u, label, (lane & ~3) + h);
            mine = settle(a, shared.list, strip.row[h], mine, own[h], group.scale.usable);
            label = h == odd ? mine : label;
        }
    }
    const bool moves = label != strip.last && first + odd * 8 + lane / 4 < end && (lane & 2) == 0;
    const unsigned moved = __ballot_sync(~0u, moves);
    if (moved == 0)
        return;
    if (moves)
        a.last.set(strip.place, label);
    move_rows(a, cells, odd ? strip.row[1] : strip.row[0], strip.last, label, moved);
}

// Where piece p of the launch lies in the order. Within groups: none goes across their borders, so
// that a block with one piece prepares one group.
struct Piece {
    int first, end; // first >= end: there is none
};

__device__ Piece find_piece(const MoveArguments &a, std::int64_t p)
{
    if (!a.within_groups) {
        const std::int64_t first = min(a.first + p * a.share, a.end);
        return {static_cast<int>(first), static_cast<int>(min(first + a.share, a.end))};
    }
    const auto share = static_cast<unsigned>(a.share);
    for (int g = 0; g < a.groups.count; ++g) {
        const auto rows = static_cast<unsigned>(a.groups.first_row[g + 1] - a.groups.first_row[g]);
        const std::int64_t count = (rows + share - 1) / share;
        if (p < count) {
            const std::int64_t first = a.groups.first_row[g] + p * a.share;
            return {static_cast<int>(first), static_cast<int>(min(first + a.share, a.groups.first_row[g + 1]))};
        }
        p -= count;
    }
    return {0, 0};
}

// The block's pieces of the order.
template <int C, int W>
__device__ void take_pieces(const MoveArguments &a, const Shared &shared, const MoveCells &cells)
{
    Group group;
    int g = -1, group_end = 0;
    for (std::int64_t p = blockIdx.x;; p += gridDim.x) {
        const Piece piece = find_piece(a, p);
        if (piece.first >= piece.end)
            return;
        int at = piece.first;
        const int last = piece.end;
        while (at < last) {
            const bool opens = group_end <= at;
            for (; group_end <= at; ++g)
                group_end = static_cast<int>(a.groups.first_row[g + 2]);
            const int end = min(last, group_end);
            int first = at + static_cast<int>(threadIdx.x / 32) * strip_rows;
            Strip next;
            find_strip(a, first, end, next);
            if (opens) {
                __syncthreads();
                group = open_group<C, W>(a, shared, g);
            }
            for (; first < end; first += warps * strip_rows) {
                const Strip strip = next;
                find_strip(a, first + warps * strip_rows, end, next);
                take_strip<C, W>(a, shared, cells, group, strip, next, first, end);
            }
            at = end;
        }
    }
}

template <int C, int W>
__global__ void __launch_bounds__(threads, 1) strips_kernel(const __grid_constant__ MoveArguments a)
{
    if (!a.goes_on && block_stopped(a.update))
        return;
    const Shared shared = carve<C>(a);
    const MoveCells cells = {static_cast<int>(shared.cells - shared_words(0)), a.view.k, a.view.d, 1};
    do {
        cells.clear();
        take_pieces<C, W>(a, shared, cells);
        __syncthreads();
        cells.publish(a.update.sums);
    } while (a.goes_on && finish_and_go_on(a.update, shared.cells));
    if (a.finish && arrives_last(&a.update.control->arrived))
        finish_iteration(a.update, shared.cells);
}

template <int C, int W>
void launch(const Stage<float> &stage, MoveArguments a)
{
    const std::size_t bytes = shared_bytes<C>(a);
    const auto kernel = strips_kernel<C, W>;
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(kernel, static_cast<int>(bytes));
    });
    const std::int64_t n = a.view.n, most = stage.context.facts.multiprocessors;
    for (std::int64_t done = 0; done < n;) {
        const std::int64_t rows = std::min(n - done, most * (move_limit - pieces * strip_rows));
        const std::int64_t per_block = (rows + most - 1) / most;
        const std::int64_t cut = std::clamp<std::int64_t>(per_block / piece_rows, 1, pieces);
        a.within_groups = rows == n && cut == 1 && 2 * a.groups.count <= most;
        const std::int64_t wanted = a.within_groups ? (rows - 1) / (most - a.groups.count) + 1 : (per_block + cut - 1) / cut;
        a.share = (wanted + strip_rows - 1) / strip_rows * strip_rows;
        a.first = done;
        a.end = done += rows;
        a.finish = done == n && !a.goes_on;
        const std::int64_t count = (rows + a.share - 1) / a.share + (a.within_groups ? a.groups.count : 0);
        const auto blocks = static_cast<unsigned>(std::min(most, count));
        if (a.goes_on) {
            void *arguments[] = {&a};
            checked("strips_kernel", [&] {
                return cudaLaunchCooperativeKernel(reinterpret_cast<void *>(kernel), dim3(blocks), dim3(threads), arguments, bytes,
                                                   stage.stream);
            });
            return;
        }
        kernel<<<blocks, threads, bytes, stage.stream>>>(a);
        launched("strips_kernel");
    }
}

template <int C>
void launch_for(const Stage<float> &stage, const MoveArguments &a)
{
    if (a.view.d % 4 == 0)
        return launch<C, 4>(stage, a);
    return a.view.d % 2 == 0 ? launch<C, 2>(stage, a) : launch<C, 1>(stage, a);
}

} // namespace

void iterate_strips(const Stage<float> &stage, MoveArguments a)
{
    a.replicas = 1;
    switch ((a.view.d + 15) / 16) {
    case 2: return launch_for<2>(stage, a);
    case 3: return launch_for<3>(stage, a);
    default: return launch_for<4>(stage, a);
    }
}

} // namespace pgkm::cuda
