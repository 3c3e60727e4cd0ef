// ballot.cu - a block sums the rows of one cluster, and a second kernel adds the blocks of each cluster up (Aggarwal
// 2013, sections 5.1, 5.2). To use: few clusters, for labels are read once for each.
//
// A warp reads 32 labels; a ballot tells which rows are the block's. The warp adds one after the other to registers,
// lane l features l, l + 32, ... The first warp adds the warps up in shared memory, behind the block's one barrier. So
// no two threads add to the same sum. A block takes as many rows as one 64-bit sum of 46-bit values holds.
#include "papers/copies.cuh"

namespace pgkm::cuda {
namespace {

constexpr int warps = 8;
constexpr int most_slots = 4; // features of a lane; more come in windows, a grid row each

// copies: one for each block of a cluster, k x d x 2. The grid's first extent is k x copies.count.
template <int Slots, typename T>
__global__ void __launch_bounds__(warps * 32)
    ballot_kernel(View<T> view, const Control *control, const std::int32_t *labels, Copies copies)
{
    if (block_stopped(control))
        return;
    __shared__ std::int64_t of_warp[warps][Slots * 32];
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    const int cluster = static_cast<int>(blockIdx.x) % view.k, block = static_cast<int>(blockIdx.x) / view.k;
    const int window = static_cast<int>(blockIdx.y) * Slots * 32;
    std::int64_t sums[Slots] = {};
    Scaling<T> scales[Slots] = {};
#pragma unroll
    for (int s = 0; s < Slots; ++s)
        if (window + s * 32 + lane < view.d)
            scales[s] = scaling_of(view, window + s * 32 + lane);
    const std::int64_t share = (view.n + copies.count - 1) / copies.count;
    const std::int64_t first = block * share, last = min(first + share, view.n);
    for (std::int64_t start = first + warp * 32; start < last; start += warps * 32) {
        const bool mine = start + lane < last && labels[start + lane] == cluster;
        for (unsigned members = __ballot_sync(~0u, mine); members != 0; members &= members - 1) {
            const std::int64_t row = start + __ffs(static_cast<int>(members)) - 1;
#pragma unroll
            for (int s = 0; s < Slots; ++s)
                if (const int f = window + s * 32 + lane; f < view.d)
                    sums[s] += feature_integer(view, row, f, scales[s], view.part);
        }
    }
#pragma unroll
    for (int s = 0; s < Slots; ++s)
        of_warp[warp][s * 32 + lane] = sums[s];
    __syncthreads();
    for (int i = lane; warp == 0 && i < Slots * 32 && window + i < view.d; i += 32) {
        std::int64_t sum = 0;
        for (int w = 0; w < warps; ++w)
            sum += of_warp[w][i];
        const std::int64_t upper = sum >> limb_bits;
        std::int64_t *to = copies.sums + block * copies.n_sums + (std::int64_t{cluster} * view.d + window + i) * 2;
        to[0] = upper;
        to[1] = sum - upper * (std::int64_t{1} << limb_bits);
    }
}

template <int Slots, typename T>
void launch(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, const Copies &copies,
            std::int64_t *totals)
{
    enqueue(ballot_kernel<Slots, T>, {view.k * copies.count, (view.d + Slots * 32 - 1) / (Slots * 32)}, warps * 32, 0,
            stage.stream, view, stage.control, labels, copies);
    merge_copies(copies, totals, stage.control, stage.stream);
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    constexpr std::int64_t labels_at_once = 3'000'000'000; // read by one launch: some 10 ms
    const std::int64_t least = (view.n + partial_sum_length - 1) / partial_sum_length;
    const int wanted = blocks_for(view.n, 1024, (stage.context.facts.multiprocessors * 16 + view.k - 1) / view.k);
    Copies copies =
        make_copies(stage.context, std::int64_t{view.k} * view.d * 2,
                    static_cast<int>(std::clamp<std::int64_t>(least, wanted, std::numeric_limits<int>::max() / view.k)),
                    std::int64_t{256} << 20, stage.stream);
    if (copies.count == 0 || view.d > 65535 * most_slots * 32)
        return sum_features_atomic(stage, view, labels, totals);
    const std::int64_t step = std::min(std::max<std::int64_t>(labels_at_once / view.k, 1024),
                                       std::int64_t{copies.count} * partial_sum_length);
    for (std::int64_t first = 0; first < view.n; first += step) {
        const View<T> part = slice(view, first, std::min(step, view.n - first));
        if (view.d <= 32)
            launch<1>(stage, part, labels + first, copies, totals);
        else if (view.d <= 64)
            launch<2>(stage, part, labels + first, copies, totals);
        else
            launch<most_slots>(stage, part, labels + first, copies, totals);
    }
}

} // namespace

const Both<Sum> sum_features_ballot = {sum<float>, sum<double>};

} // namespace pgkm::cuda
