// slots.cu (fused) - an iteration over low-dimensional float32 rows whose scores are products
// of the tensor cores (halves.cuh), sums that follow the rows.
//
// A warp takes strips of 16 rows. Lane l holds features of rows l / 4 and l / 4 + 8, F of them,
// and four slots of each 16-deep product: x1 and x2 against c1, x1 against c2, and a one that
// brings in a piece of the score's constant. So four features at all three products of the
// split, with the constant, fill one product. Then each lane sees to one row: its label follows
// from the candidates within the margin (up to 64 clusters) or from a second look at the winning
// octet. To use: d <= 16, more than 8 clusters.
#include "device/leaders.cuh"
#include "fused/slots_operands.cuh"

namespace pgkm::cuda {
namespace {

// Scores of M strips against T tiles.
template <int F, int M, int T>
__device__ void multiply(const uint2 *slots, const unsigned (&rows)[M][F][4], float (&score)[M][T][4])
{
#pragma unroll
    for (int t = 0; t < T; ++t) {
        uint2 b[F];
#pragma unroll
        for (int i = 0; i < F; ++i)
            b[i] = slots[(t * F + i) * 32];
#pragma unroll
        for (int m = 0; m < M; ++m) {
            start_product(score[m][t], rows[m][0], b[0].x, b[0].y);
#pragma unroll
            for (int i = 1; i < F; ++i)
                tensor::multiply_fp16(score[m][t], rows[m][i], b[i].x, b[i].y);
        }
    }
}

// Adds up over the four lanes of a quad; lane q gets the sum of value q, if there is one.
template <int M>
__device__ inline int scatter_sums(const int (&value)[M][2])
{
    const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
    int pair[M];
#pragma unroll
    for (int m = 0; m < M; ++m)
        pair[m] = (odd ? value[m][1] : value[m][0]) + __shfl_xor_sync(~0u, odd ? value[m][0] : value[m][1], 1);
    return (upper ? pair[M - 1] : pair[0]) + __shfl_xor_sync(~0u, upper ? pair[0] : pair[M - 1], 2);
}

// The sum of candidates (halves.cuh) of the lane's own row, among T tiles.
template <int F, int M, int T>
__device__ int filter(const uint2 *slots, const unsigned (&rows)[M][F][4], float margin)
{
    float score[M][T][4];
    int sums[M][2];
    multiply<F, M, T>(slots + (threadIdx.x & 31), rows, score);
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int least = INT_MAX;
#pragma unroll
            for (int t = 0; t < T; ++t)
                least = least_bits(least, score[m][t][2 * h], score[m][t][2 * h + 1]);
            const float threshold = __int_as_float(least_of_quad(least)) + margin;
            sums[m][h] = candidates_of(count_candidates<T>(score[m], h, threshold));
        }
    return scatter_sums<M>(sums);
}

// At least the square root, in few instructions.
__device__ inline float upper_root(float value)
{
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(value));
    return root * (1.0f + 0x1p-20f) + 0x1p-40f;
}

// Label of the lane's own row, -1: open. For more centroids than have room in registers: octets
// are compared by their least, and the winning one is looked into again in float32.
//
// Of the best found there, with score l, and the row's length follow how long a centroid can be
// that is nearer still: |c| <= |x| + |x - c|, |x - c|^2 = 2 (l - b) + |x|^2. So the bounds are
// those of such rows and centroids, not of the longest.
template <int F, int M, int T>
__device__ int filter_octets(const MoveArguments &a, const Shared &shared, const unsigned (&rows)[M][F][4],
                             const HalfScale &scale, int row)
{
    static_assert(T == 4); // tiles of an octet
    const int tiles = tiles_of<T>(a.view.k);
    const uint2 *mine = shared.slots + (threadIdx.x & 31);
    Leaders leaders[M][2];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            leaders[m][h] = Leaders::none();
    int octet = static_cast<int>(threadIdx.x & 3);
#pragma unroll 1
    for (int first = 0; first < tiles; first += T, octet += 4) {
        float score[M][T][4];
        multiply<F, M, T>(mine + first * F * 32, rows, score);
#pragma unroll
        for (int m = 0; m < M; ++m)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float least = INFINITY;
#pragma unroll
                for (int t = 0; t < T; ++t)
                    least = fminf(least, fminf(score[m][t][2 * h], score[m][t][2 * h + 1]));
                leaders[m][h].add(least, octet);
            }
    }
    const Leaders own = scatter_leaders<M>(leaders);
    const float *from = a.view.values + row * a.view.d;
    float x[4 * F];
#pragma unroll
    for (int f = 0; f < 4 * F; ++f)
        x[f] = f < a.view.d ? __fmaf_rn(from[f], scale.scale, -a.shift[f] * scale.scale) : 0.0f;
    float least = INFINITY, second = INFINITY, square = 0.0f;
    int label = 0;
#pragma unroll
    for (int f = 0; f < 4 * F; ++f)
        square = __fmaf_rn(x[f], x[f], square);
#pragma unroll
    for (int i = 0; i < 2 * T; ++i) {
        const int column = octet_column(own.octet, i);
        const float4 *value = reinterpret_cast<const float4 *>(shared.values) + column * F;
        float score = shared.constants[column];
#pragma unroll
        for (int f = 0; f < F; ++f) {
            const float4 four = value[f];
            score = __fmaf_rn(x[4 * f], four.x, score);
            score = __fmaf_rn(x[4 * f + 1], four.y, score);
            score = __fmaf_rn(x[4 * f + 2], four.z, score);
            score = __fmaf_rn(x[4 * f + 3], four.w, score);
        }
        second = fminf(second, fmaxf(least, score));
        label = score < least ? column : label;
        least = fminf(least, score);
    }
    square *= 1.0f + 0x1p-18f;
    const float length = upper_root(square);
    const float reach = length + upper_root(fmaxf(2.0f * (least + scale.margin - scale.bias) + square, 0.0f));
    const float mine_error = 1.02f * fma_error(length, reach, scale.bias, a.view.d);
    const float margin = mine_error + 1.02f * half_error(length, reach, scale.bias, a.view.d, F);
    return second > least + 2.0f * mine_error && own.second > least + margin ? label : -1;
}

// Once: all scores are held in registers. Labels: those alone.
template <int F, int M, int T, bool Once, bool Labels>
__global__ void __launch_bounds__(threads, 2) slots_kernel(const __grid_constant__ MoveArguments a)
{
    if (block_stopped(a.update))
        return;
    const Shared shared = carve<F, T>(a);
    const MoveCounters counters = {static_cast<int>(shared.counters - shared_words(0)), a.view.k, a.view.d, 1};
    if constexpr (!Labels) {
        counters.clear();
        counters.prepare_scales(a.view, a.floats);
    }
    const HalfScale scale = prepare<F, T>(a, shared);
    LaterRows later(shared.later);
    const int lane = static_cast<int>(threadIdx.x & 31);
    float shift[F];
    for (int i = 0; i < F; ++i)
        shift[i] = (lane & 3) * F + i < a.view.d ? a.shift[(lane & 3) * F + i] * scale.scale : 0.0f;
    // A launch has far fewer than 2^31 rows: no more than its blocks' sums can take.
    const int n = static_cast<int>(a.view.n), step = static_cast<int>(gridDim.x) * warps * 16 * M;
    int first = static_cast<int>(blockIdx.x * warps + threadIdx.x / 32) * 16 * M;
    Rows<F, M> next;
    load<F, M, Once, Labels>(a, first, next);
    for (bool end = first >= n;; first += step, end = first >= n) {
        if (!end) {
            const Rows<F, M> rows = next;
            load<F, M, Once, Labels>(a, first + step, next);
            unsigned slots[M][F][4];
#pragma unroll
            for (int m = 0; m < M; ++m)
                split<F>(rows.x[m], shift, scale.scale, slots[m]);
            const int row = own_row(first);
            int label;
            if constexpr (Once)
                label = sole_candidate(filter<F, M, T>(shared.slots, slots, scale.margin));
            else
                label = filter_octets<F, M, T>(a, shared, slots, scale, min(row, n - 1));
            label = scale.usable ? label : -1;
            const bool mine = row < n && (M == 2 || (lane & 2) == 0);
            if (Labels && mine && label >= 0)
                a.labels[row] = label;
            const bool changed = mine && (Labels ? label < 0 : label != rows.last);
            if (!__any_sync(~0u, changed))
                continue;
            later.push(changed, Later::entry(row, Labels ? 0 : rows.last, label));
        }
        later.take<4 * F, Labels>(a, counters, end);
        if (end)
            break;
    }
    if constexpr (!Labels)
        end_iteration(a, counters);
}

template <int F, int T, bool Once, bool Labels>
void launch(const Stage<float> &stage, MoveArguments a)
{
    constexpr int M = F <= 2 ? 2 : 1;
    a.replicas = 1;
    launch_moves(stage, slots_kernel<F, M, T, Once, Labels>, threads, shared_bytes<F, T>(a), warps * 16 * M, a);
}

template <int F, bool Labels>
void launch_for(const Stage<float> &stage, const MoveArguments &a)
{
    if (a.view.k <= 16)
        return launch<F, 2, true, Labels>(stage, a);
    if (a.view.k <= 32)
        return launch<F, 4, true, Labels>(stage, a);
    if (a.view.k <= 64)
        return launch<F, 8, true, Labels>(stage, a);
    launch<F, 4, false, Labels>(stage, a);
}

template <bool Labels>
void launch_all(const Stage<float> &stage, const MoveArguments &a)
{
    with_size<1, 2, 3, 4>((a.view.d + 3) / 4,
                          [&](auto features) { launch_for<decltype(features)::value, Labels>(stage, a); });
}

} // namespace

void iterate_slots(const Stage<float> &stage, const MoveArguments &arguments)
{
    launch_all<false>(stage, arguments);
}

void label_slots(const Stage<float> &stage, const MoveArguments &arguments)
{
    launch_all<true>(stage, arguments);
}

} // namespace pgkm::cuda
