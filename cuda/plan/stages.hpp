// stages.hpp - one signature per stage of an iteration; each strategy is one file that implements it.
//
// All of them only enqueue work in `stream` (divide_and_conquer waits, too), and every kernel returns at once
// when control->stop is set (control may be nullptr). No kernel may run longer than about 50 ms, so that a cancel is
// seen: in_launches() cuts the rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "plugin/check.hpp"
#include "plugin/context.hpp"
#include "plan/choose.hpp"
#include "device/view.cuh"

namespace pgkm::cuda {

// Resident rows in a form that an assignment made once, for the iterations to come. Its owner
// drops it when the rows change; refused: there was no memory for it.
struct PreparedRows {
    struct Part {
        const void *values;
        std::int64_t n;
        std::int32_t k;
        DeviceArray<char> memory;
        std::shared_ptr<Kept> order = nullptr; // order/, where the assignment needs it
        bool first_order = false;              // the next assignment shall order the rows anew, by their labels
    };
    std::vector<Part> parts;
    bool refused = false;

    // That of n rows at `values` under k centroids; nullptr: there is none.
    Part *find(const void *values, std::int64_t n, std::int32_t k)
    {
        const auto found = std::find_if(parts.begin(), parts.end(), [=](const Part &part) {
            return part.values == values && part.n == n && part.k == k;
        });
        return found == parts.end() ? nullptr : &*found;
    }
    // One with so many bytes, of at most a quarter of what the limit leaves; nullptr, and refused from now on: there is
    // no room.
    Part *add(Context &context, const void *values, std::int64_t n, std::int32_t k, std::size_t bytes)
    {
        refused = bytes > context.budget.room() / 4 || !within_limit([&] {
                      parts.push_back({values, n, k, DeviceArray<char>(context.budget, bytes)});
                  });
        return refused ? nullptr : &parts.back();
    }
};

// The middle of the rows' box, which filters take from rows and centroids, so that large common offsets cost no
// precision.
template <typename T>
struct Middle {
    const T *shift = nullptr; // d; nullptr: not in use
    float reach = 0.0f;       // at least |x - shift| of every row
};

// What a stage may use beside its rows.
template <typename T>
struct Stage {
    Context &context;
    cudaStream_t stream;
    const Control *control;
    Middle<T> middle;
    PreparedRows *prepared = nullptr; // given when the same rows will come again
    bool constant = false;            // the problem holds the process's constant memory
};

// A strategy for both element types, called as a function of either.
template <template <typename> typename Function>
struct Both {
    Function<float> f32;
    Function<double> f64;

    template <typename T, typename... More>
    void operator()(const Stage<T> &stage, const View<T> &rows, const More &...more) const
    {
        if constexpr (std::is_same_v<T, float>)
            f32(stage, rows, more...);
        else
            f64(stage, rows, more...);
    }
};

// ---- assignment: labels[i] of every row of the view ----
template <typename T>
using Assign = void (*)(const Stage<T> &stage, const View<T> &rows, std::int32_t *labels);
extern const Both<Assign> assign_generic, assign_register, assign_tiled, assign_tensor;
extern const Both<Assign> assign_register_constant, assign_register_shared, assign_register_global,
    assign_generic_constant, assign_distance_matrix;

// ---- feature sums (k x d x 2) and mass sums (k x 2) of one part over given labels, added to what is there ----
template <typename T>
using Sum = void (*)(const Stage<T> &stage, const View<T> &rows, const std::int32_t *labels, std::int64_t *sums);
extern const Both<Sum> sum_features_atomic, sum_features_block_merge, sum_features_partitioned, sum_features_sorted;
extern const Both<Sum> sum_features_cluster_merge, sum_features_ballot, sum_features_divide_and_conquer,
    sum_features_staged_rows;
extern const Both<Sum> sum_masses_global_atomic, sum_masses_partitioned_local;
extern const Both<Sum> sum_masses_partitioned_global, sum_masses_partitioned_private;

// ---- fused: labels and both sums in one read of the rows, which have no weights ----
template <typename T>
using Fuse = void (*)(const Stage<T> &stage, const View<T> &rows, const Accumulators &sums);
extern const Both<Fuse> fused_tiled;

// The view without its first `skip` rows, cut to `rows`.
template <typename T>
View<T> slice(View<T> view, std::int64_t skip, std::int64_t rows)
{
    view.values += skip * view.d;
    if (view.weights != nullptr)
        view.weights += skip;
    if (view.counts != nullptr)
        view.counts += skip;
    view.n = rows;
    return view;
}

// Calls body(first, rows) so that no call covers more than `rate` x 30 ms of distance terms
// (rows x k x d), rate in terms per second.
template <typename T, typename Body>
void in_launches(const View<T> &view, double rate, Body &&body)
{
    const double terms = static_cast<double>(view.k) * static_cast<double>(view.d);
    const double rows = std::min(rate * 0.03 / terms, 1e12);
    const std::int64_t step = std::max<std::int64_t>(static_cast<std::int64_t>(rows), 1024);
    for (std::int64_t first = 0; first < view.n; first += step)
        body(first, std::min(step, view.n - first));
}

// The same for a kernel that does all terms in float64, which some devices do at a sixty-fourth of their rate: a
// quarter of what the device declares at most.
template <typename T, typename Body>
void in_exact_launches(const Stage<T> &stage, const View<T> &view, double rate, Body &&body)
{
    in_launches(view, std::min(rate, float64_rate(stage.context.facts) / 4), body);
}

// Blocks for `work` items of which each takes `per_block`: 1 to `most`.
inline int blocks_for(std::int64_t work, int per_block, int most)
{
    return static_cast<int>(std::clamp<std::int64_t>((work + per_block - 1) / per_block, 1, most));
}

// How many blocks of the kernel the device runs at a time with so many bytes of dynamic shared memory, at least one for
// each multiprocessor.
template <typename... Arguments>
int resident_blocks(const Context &context, void (*kernel)(Arguments...), int threads, std::size_t bytes)
{
    allow_memory(kernel, bytes);
    int per_unit = 0;
    checked("cudaOccupancy",
            [&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, threads, bytes); });
    return context.facts.multiprocessors * std::max(per_unit, 1);
}

// Calls body(std::integral_constant<int, Size>{}) with the first of Sizes, which ascend, that is at least `wanted`;
// false where none is.
template <int... Sizes, typename Body>
bool with_size(int wanted, Body &&body)
{
    return ((wanted <= Sizes && (body(std::integral_constant<int, Sizes>{}), true)) || ...);
}

} // namespace pgkm::cuda
