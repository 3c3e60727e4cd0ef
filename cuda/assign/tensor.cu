// tensor.cu - assignment on the tensor cores: an fp16 product as a filter with a proven error
// bound, what it leaves open settled by the contract's distance. (The tiled product is Li et
// al. 2010, Algorithm 4; the pivots prune as in Elkan 2003.)
//
// To use: k x d in the thousands and up, where arithmetic is the limit; best on data that has
// clusters. Rows are grouped by up to 16 pivots; a row and its centroids are taken relative to
// the pivot, so that fp16 rounds small differences and not large coordinates, and only the
// centroids that the group's rows can reach are multiplied (tensor_table.cuh).
//
// The bound. Scale by a power of two, subtract the pivot: x', c'. fp16 gives x~ = x' - a and
// c~ = c' - b. |a|, |b| are computed per row and per centroid, rounded up. Let j be a nearest
// centroid by the contract and m the one with the least computed score; u = x~ - c~.
//   D = |u + a - b|^2, so with s = |u|^2
//   s_j - s_m = (D_j - D_m) - 2 (u_j - u_m).a + 2 u_j.b_j - 2 u_m.b_m - |a - b_j|^2 + |a - b_m|^2.
// D_j <= D_m (1 + 2^-40); u_j - u_m = c~_m - c~_j; with r = |a| + max |b|, |a - b| <= r and
// |u_j| <= |u_m| + 2 r (triangle inequality). With C >= |c~_j|, |c~_m|:
//   s_j - s_m <= 4 min(C, |u_m| + r) |a| + 4 (|u_m| + r) max|b| + r^2 + 2^-40 D_m.
// D_j <= D_p for the centroid p nearest to the pivot, so |c'_j| <= 2 |x'| + |c'_p|: C and
// max|b| need only hold over such centroids and m.
// Scores S = |c~|^2 - 2 acc are s less |x~|^2, with errors: products of fp16 are exact in
// float32. Per 16 features the tensor core aligns and truncates at most 16 products and 4
// partial sums and rounds 4 times, each time by less than 2^-23 of the largest term, which
// |x~||c~| bounds (Cauchy-Schwarz holds for every partial sum): 24 x 2^-23; we allow 32, that
// is 2^-22 per feature. |c~|^2, the last fma and sums of thresholds: 2^-22 (C^2 + 2 |x~| C).
//   e = 2 d 2^-22 |x~| C + 2^-22 (C^2 + 2 |x~| C),  T = S_m + (s_j - s_m) + 2 e.
// j's score is at most T: a row whose second least score lies above T has the label m, the
// others are measured exactly over all centroids with a score up to T. T's own roundings are
// covered by a factor 1 + 2^-10, underflow by adding 2^-60 (the scaled box is 2^14, and in
// float64 the scale is at most 2^400). Where a bound is not finite, the row is measured
// against every centroid.
#include "tensor_group.cuh"
#include "tensor_passes.cuh"
#include "tensor_pivots.cuh"

namespace pgkm::cuda {
namespace {

using namespace tensor;

// Rows of a tile, by what fits in shared memory: 0 when nothing does.
int tile_rows(int d, bool collects, int shared_bytes)
{
    const auto room = static_cast<std::size_t>(shared_bytes);
    if (Block<float, 4>::bytes(d, collects) <= room)
        return 128;
    if (Block<float, 2>::bytes(d, collects) <= room)
        return 64;
    return Block<float, 1>::bytes(d, collects) <= room ? 32 : 0;
}

// As many pivots as the rows repay, within 128 MB of fp16 columns.
int group_count(std::int64_t rows, int d, int k)
{
    const double table = static_cast<double>(round_up(k, column_tile)) * round_up(d, feature_chunk) * 2.0;
    const double most = std::min(static_cast<double>(std::min(k, max_groups)), 134217728.0 / table);
    return std::max(1, static_cast<int>(std::min(most, static_cast<double>(rows) / 512.0)));
}

template <typename Kernel>
int resident_blocks(const Context &context, Kernel kernel, std::size_t bytes)
{
    checked("cudaFuncSetAttribute", [&] {
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    });
    int per_unit = 0;
    checked("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, filter_threads, bytes);
    });
    return std::max(per_unit, 1) * context.facts.multiprocessors;
}

template <int WarpRows, typename T>
void find(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    const std::size_t bytes = Block<T, WarpRows>::bytes(view.d, false);
    const int blocks = resident_blocks(stage.context, find_kernel<T, WarpRows>, bytes);
    find_kernel<T, WarpRows><<<blocks, filter_threads, bytes, stage.stream>>>(view, stage.control, l, labels);
    launched("find_kernel");
}

template <int WarpRows, typename T>
void collect(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    const std::size_t bytes = Block<T, WarpRows>::bytes(view.d, true);
    const int blocks = resident_blocks(stage.context, collect_kernel<T, WarpRows>, bytes);
    collect_kernel<T, WarpRows><<<blocks, filter_threads, bytes, stage.stream>>>(view, stage.control, l, labels);
    launched("collect_kernel");
}

// Pivots, groups of rows, and the columns of every group.
template <typename T>
void prepare_slice(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    const cudaStream_t stream = stage.stream;
    const Control *control = stage.control;
    const auto cleared = static_cast<std::size_t>(reinterpret_cast<char *>(l.pairs) - reinterpret_cast<char *>(l.head));
    checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(l.head, 0, cleared, stream); });
    const unsigned warps = static_cast<unsigned>((view.k + 7) / 8);
    pair_kernel<<<static_cast<unsigned>(l.sample), 256, 0, stream>>>(view, control, l);
    seed_kernel<<<1, 256, 0, stream>>>(control, l, view.k);
    join_kernel<<<warps, 256, 0, stream>>>(view, control, l);
    pivot_kernel<<<max_groups, 256, 0, stream>>>(view, control, l);
    const int blocks = blocks_for(view.n, 128, stage.context.facts.multiprocessors * 8);
    group_kernel<<<blocks, group_threads, 0, stream>>>(view, control, l);
    scale_kernel<<<1, 1, 0, stream>>>(control, l);
    const auto n = static_cast<std::int32_t>(view.n);
    scatter_kernel<<<static_cast<unsigned>((n + 4095) / 4096), 1024, 0, stream>>>(control, l, n);
    const unsigned groups = static_cast<unsigned>(l.groups), columns = static_cast<unsigned>(l.columns / 8);
    facts_kernel<<<dim3(warps, groups), 256, 0, stream>>>(view, control, l);
    order_kernel<<<groups, 1024, 0, stream>>>(control, l, view.k);
    fill_kernel<<<dim3(columns, groups), 256, 0, stream>>>(view, control, l);
    launched("tensor preparation");
}

template <typename T>
void assign_slice(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const int groups = group_count(view.n, view.d, view.k);
    Carver measure(nullptr);
    carve<T>(measure, view.n, view.d, view.k, groups);
    Carver carver(reinterpret_cast<char *>(stage.context.scratch(measure.used())));
    const Layout<T> l = carve<T>(carver, view.n, view.d, view.k, groups);
    prepare_slice(stage, view, l);
    const int shared_bytes = stage.context.facts.shared_bytes_per_block;
    switch (tile_rows(view.d, false, shared_bytes)) {
    case 128: find<4>(stage, view, l, labels); break;
    case 64: find<2>(stage, view, l, labels); break;
    default: find<1>(stage, view, l, labels); break;
    }
    switch (tile_rows(view.d, true, shared_bytes)) {
    case 128: collect<4>(stage, view, l, labels); break;
    case 64: collect<2>(stage, view, l, labels); break;
    default: collect<1>(stage, view, l, labels); break;
    }
    settle(stage, view, {&l.head->settle, l.settle}, labels);
}

} // namespace

template <typename T>
void assign_tensor(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    if (view.k == 1 || tile_rows(view.d, true, stage.context.facts.shared_bytes_per_block) == 0)
        return assign_tiled(stage, view, labels);
    // A slice takes at most about 30 ms, and its lists about 140 MB.
    const double terms = static_cast<double>(view.k) * static_cast<double>(view.d);
    const std::int64_t most = std::clamp<std::int64_t>(static_cast<std::int64_t>(6e11 / terms), 4096, std::int64_t{1} << 23);
    const std::int64_t slices = (view.n + most - 1) / most, rows = (view.n + slices - 1) / std::max<std::int64_t>(slices, 1);
    for (std::int64_t first = 0; first < view.n; first += rows)
        assign_slice(stage, slice(view, first, std::min(rows, view.n - first)), labels + first);
}

template void assign_tensor<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_tensor<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
