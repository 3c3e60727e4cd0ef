// tensor.cu - assignment on the tensor cores: an fp16 product as a filter with a proven error
// bound, what it leaves open settled by the contract's distance. (The tiled product is Li et
// al. 2010, Algorithm 4; the pivots prune as in Elkan 2003.)
//
// To use: k x d in the thousands and up, where arithmetic is the limit; best on data that has
// clusters. Rows are grouped by up to 16 pivots (order/ordered_rows.hpp); a row and its centroids are taken relative to
// the pivot, so that fp16 rounds small differences and not large coordinates, and only the
// centroids that the group's rows can reach are multiplied (tensor_table.cuh).
//
// The bound. Scale by a power of two, subtract the pivot: x', c'. fp16 gives x~ = x' - a and
// c~ = c' - b; |a|, |b| are computed per row and centroid, rounded up. Let j be a nearest
// centroid by the contract, m any other, u = x~ - c~, s = |u|^2. As D = |u + a - b|^2,
//   s_j - s_m = (D_j - D_m) + 2 (c~_j - c~_m).a + 2 u_j.b_j - 2 u_m.b_m + |a - b_m|^2 - |a - b_j|^2
//   <= 2^-40 D_m + 2 |a||c~_j| + 2 (|u_j| + |a|)|b_j| + 2 |a||c~_m| + (2 |u_m| + 2 |a| + |b_m|)|b_m|.
// With p the centroid nearest to the pivot, D_j <= D_p gives sqrt(D_j) <= V = |x'| + |c'_p|:
// |c'_j| <= |x'| + V, the reach; |u_j| <= V + |a| + R with R >= |b_j| within the reach.
// Scores S = |c~|^2 - 2 acc are s less |x~|^2 with errors: products of fp16 are exact in
// float32. Per 16 features the tensor core aligns and truncates at most 16 products and 4
// partial sums and rounds 4 times, each time by less than 2^-23 of the largest term, which
// |x~||c~| bounds (Cauchy-Schwarz holds for every partial sum): 24 x 2^-23; we allow 32, that
// is 2^-22 per feature. |c~|^2 and three roundings of a score: 2^-22 (|c~|^2 + 2 |x~||c~|).
//   e = 2 d 2^-22 |x~||c~| + 2^-22 (|c~|^2 + 2 |x~||c~|).
// All that depends on j is at most w L_j with the column's weight L_j = |c~_j| + 4096 |b_j| and
//   w = max(2 |a| + 2 d 2^-22 |x~| + 2^-22 (C + 2 |x~|), (2 V + 4 |a| + 2 R) / 4096),
// C >= |c~_j| within the reach. So S_j - w L_j <= T = S_m + (terms of m) + e_m for every m, and
// for any larger w: a tile uses its rows' largest. m is the column with the least S - w L. A
// row where the second least lies above T has the label m, the others are measured exactly
// over all centroids with S - w L <= T. T's own roundings are covered by a factor 1 + 2^-10,
// underflow by adding 2^-60 (the scaled box is 2^14, and in float64 the scale is at most
// 2^400). Where a bound is not finite, the row is measured against every centroid.
//
// Rows become fp16 once, grouped, and serve all iterations where they may be kept (Stage::prepared): half the bytes to
// read, and no grouping.
#include "assign/tensor_hopper.cuh"
#include "assign/tensor_narrow.cuh"
#include "assign/tensor_order.cuh"
#include "assign/tensor_passes.cuh"

namespace pgkm::cuda {
namespace tensor {
namespace {

// Rows of a slice that has no place to be kept: about 512 MB.
constexpr std::int64_t passing_rows(int d)
{
    return std::max<std::int64_t>((std::int64_t{1} << 28) / (d + 64), 4096);
}

static_assert(Block<Shape<1, 128>>::bytes(64, true) <= 32 * 64 * 2 + 35840); // fits_tensor_tile()

template <typename S, typename T>
void both_passes(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    if (fits_narrow(view.d, view.k, stage.context.facts)) {
        narrow_filter(stage, view, l, labels);
    } else if (l.labels != nullptr) {
        labels = l.labels;
        hopper_filter(stage, view, l);
    } else {
        const std::size_t bytes = Block<S>::bytes(view.d, false);
        const int blocks = resident_blocks(stage.context, find_kernel<T, S>, filter_threads, bytes);
        enqueue(find_kernel<T, S>, blocks, filter_threads, bytes, stage.stream, view, stage.control, l, labels);
    }
    if (!l.second_pass) // few rows come here: lists hold what such long rows leave open
        return settle(stage, view, {&l.head->settle, l.settle}, false, labels);
    // The lists of the second pass take room: its tiles may have to be smaller.
    using Smaller = Shape<S::rows == 128 ? 2 : 1, 128>;
    const bool fits =
        Block<S>::bytes(view.d, true) <= static_cast<std::size_t>(stage.context.facts.shared_bytes_per_block);
    const auto collect = [&](auto shape) {
        using Collect = decltype(shape);
        const std::size_t room = Block<Collect>::bytes(view.d, true);
        const int resident = resident_blocks(stage.context, collect_kernel<T, Collect>, filter_threads, room);
        enqueue(collect_kernel<T, Collect>, resident, filter_threads, room, stage.stream, view, stage.control, l,
                labels);
    };
    if (fits)
        collect(S());
    else
        collect(Smaller());
    settle(stage, view, {&l.head->settle, l.settle}, true, labels);
}

// Labels to the caller's array. Where the fit has stopped they stay: those of the layout may be scratch, which other
// stages have used since.
__global__ void hand_out_kernel(const Control *control, const std::int32_t *from, std::int64_t n, std::int32_t *to)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n && !stopped(control))
        to[i] = from[i];
}

// The largest tile that fits in shared memory; narrow where few columns or features leave
// the time to what surrounds the products.
template <typename T>
void filter(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    const auto room = static_cast<std::size_t>(stage.context.facts.shared_bytes_per_block);
    if (Block<Shape<4, 128>>::bytes(view.d, false) > room) {
        if (Block<Shape<2, 128>>::bytes(view.d, false) <= room)
            return both_passes<Shape<2, 128>>(stage, view, l, labels);
        return both_passes<Shape<1, 128>>(stage, view, l, labels);
    }
    if (view.k <= 64 || view.d <= 64)
        return both_passes<Shape<4, 64>>(stage, view, l, labels);
    both_passes<Shape<4, 128>>(stage, view, l, labels);
}

// The centroids as columns of every group.
template <typename T>
void columns_of_groups(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    enqueue_fill(l.head, 0, offsetof(Head, nearest), stage.stream);
    const unsigned groups = static_cast<unsigned>(l.groups), columns = static_cast<unsigned>(l.columns / bundle_size);
    enqueue(facts_kernel<T>, {(view.k + 7) / 8, groups}, 256, 0, stage.stream, view, stage.control, l);
    enqueue(order_kernel<T>, groups, 1024, 0, stage.stream, stage.control, l, view.k);
    enqueue(fill_kernel<T>, {columns, groups}, 1024, 0, stage.stream, view, stage.control, l);
}

// Whether the layout is that of the filter on a Hopper.
template <typename T>
bool takes_hopper(const Context &context, int d, int k)
{
    return hopper_usable<T>(context) && !fits_narrow(d, k, context.facts);
}

// Bytes that a slice takes: of the rows' order and halves, of what else lasts, and of what does not.
struct SliceBytes {
    std::size_t order, lasting, passing;
};

template <typename T>
SliceBytes slice_bytes(const Context &context, std::int64_t rows, int d, int k)
{
    Carver lasting(nullptr), passing(nullptr);
    carve<T>(lasting, passing, rows, d, k, pivots_for(rows, d, k), takes_hopper<T>(context, d, k));
    return {order_bytes<T>(rows, d, true), lasting.used(), passing.used()};
}

// What an assignment of these rows made before, or a place for it; nullptr where there is no room or rows do not come
// again. Sets `fresh` when nothing is in it yet.
template <typename T>
PreparedRows::Part *part_of(const Stage<T> &stage, const View<T> &view, const SliceBytes &bytes, bool &fresh)
{
    fresh = true;
    PreparedRows *prepared = stage.prepared;
    if (prepared == nullptr || prepared->refused)
        return nullptr;
    if (PreparedRows::Part *part = prepared->find(view.values, view.n, view.k)) {
        fresh = false;
        return part;
    }
    Context &context = stage.context;
    const int pivots = pivots_for(view.n, view.d, view.k);
    std::shared_ptr<RowOrder<T>> order = find_order(context, view.values, view.n, pivots);
    // Sums, labels and other jobs need memory too: half of what is left is theirs.
    std::size_t wanted = bytes.lasting + bytes.order;
    if (order != nullptr) // it may be there without its halves
        wanted -= order_bytes<T>(view.n, view.d, order->rows.halves != nullptr);
    const bool made =
        context.budget.has(2 * wanted) && context.scratch_holds(wanted + bytes.passing) && within_limit([&] {
            order = order_of_loaded(context, view.values, view.n, view.d, pivots, true);
            DeviceArray<char> lasting(context.budget, bytes.lasting);
            context.scratch(bytes.passing);
            prepared->parts.push_back({view.values, view.n, view.k, std::move(lasting), std::move(order)});
        });
    if (made)
        return &prepared->parts.back();
    prepared->refused = true;
    prepared->parts.clear(); // of slices before this one
    return nullptr;
}

// At most `most` rows, halved until their layout fits the device's limit; 0 where few would fit.
// Rows that are prepared already are taken in the same slices again.
template <typename T>
std::int64_t rows_within_limit(const Stage<T> &stage, const View<T> &view, std::int64_t most)
{
    if (stage.prepared != nullptr)
        for (const PreparedRows::Part &part : stage.prepared->parts)
            if (part.values == view.values && part.k == view.k)
                return part.n;
    const Context &context = stage.context;
    for (std::int64_t rows = std::min(most, view.n);; rows = (rows + 1) / 2) {
        const SliceBytes bytes = slice_bytes<T>(context, rows, view.d, view.k);
        if (context.scratch_holds(bytes.order + bytes.lasting + bytes.passing))
            return rows;
        if (rows <= 1024)
            return 0;
    }
}

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);

template <typename T>
void assign_slice(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const Context &context = stage.context;
    const int pivots = pivots_for(view.n, view.d, view.k);
    const SliceBytes bytes = slice_bytes<T>(context, view.n, view.d, view.k);
    bool fresh = true;
    PreparedRows::Part *part = part_of(stage, view, bytes, fresh);
    const bool kept = part != nullptr;
    if (!kept && view.n > passing_rows(view.d))
        return assign(stage, view, labels); // in smaller slices
    const std::size_t apart = kept ? 0 : bytes.order + bytes.lasting;
    char *scratch = reinterpret_cast<char *>(stage.context.scratch(apart + bytes.passing));
    Carver ordered(scratch), lasting(kept ? part->memory.get() : scratch + bytes.order), passing(scratch + apart);
    Layout<T> l = carve<T>(lasting, passing, view.n, view.d, view.k, pivots, takes_hopper<T>(context, view.d, view.k));
    if (!context.facts.takes(Mechanism::gaps))
        l.gaps = nullptr;
    l.second_pass = fits_tensor_tile(view.d, context.facts);
    if (kept) {
        l.rows = static_cast<const RowOrder<T> &>(*part->order).rows;
    } else {
        l.rows = carve_order<T>(ordered, view.n, view.d);
        carve_halves(ordered, l.rows);
        l.rows.values = view.values;
        order_rows(context, l.rows, pivots);
        make_halves(context, l.rows);
    }
    if (fresh)
        forget_labels(stage, view, l);
    else if (l.labels != nullptr && part->first_order && part->order.use_count() == 1 && // nobody else relies on it
             context.facts.takes(Mechanism::label_order)) {
        auto &own = static_cast<RowOrder<T> &>(*part->order);
        own.rows.halves = nullptr; // what fails on the way leaves the rows without
        order_by_labels(stage, view, l);
        own.rows = l.rows;
    }
    if (kept)
        part->first_order = fresh && l.labels != nullptr;
    columns_of_groups(stage, view, l);
    filter(stage, view, l, labels);
    if (l.labels != nullptr)
        enqueue(hand_out_kernel, (view.n + 255) / 256, 256, 0, stage.stream, stage.control, l.labels, view.n, labels);
}

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const bool streams = takes_hopper<T>(stage.context, view.d, view.k);
    const DeviceFacts &facts = stage.context.facts;
    if (view.k == 1 || !facts.mma || !(streams || fits_tensor_tile(view.d, facts)))
        return assign_tiled(stage, view, labels);
    const bool may_keep = stage.prepared != nullptr && !stage.prepared->refused;
    std::int64_t wanted = may_keep ? std::int64_t{1} << 24 : passing_rows(view.d);
    if (stage.control == nullptr) { // no flag to watch: at most about 30 ms
        const double terms = static_cast<double>(view.k) * static_cast<double>(view.d);
        wanted = std::min(wanted, std::max<std::int64_t>(static_cast<std::int64_t>(6e11 / terms), 4096));
    }
    const std::int64_t most = rows_within_limit(stage, view, wanted);
    if (most == 0)
        return assign_tiled(stage, view, labels);
    const std::int64_t slices = (view.n + most - 1) / most,
                       rows = (view.n + slices - 1) / std::max<std::int64_t>(slices, 1);
    for (std::int64_t first = 0; first < view.n; first += rows)
        assign_slice(stage, slice(view, first, std::min(rows, view.n - first)), labels + first);
}

} // namespace
} // namespace tensor

const Both<Assign> assign_tensor = {tensor::assign<float>, tensor::assign<double>};

} // namespace pgkm::cuda
