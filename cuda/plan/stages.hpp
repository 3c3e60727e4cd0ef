// stages.hpp - one signature per stage; each strategy is one file that implements it.
//
// All of them only enqueue work in `stream`, and every kernel returns at once when
// control->stop is set (control may be nullptr). Limits on a launch's length are kept by
// rows_per_launch: no kernel may run longer than about 50 ms, so that a cancel is seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plugin/check.hpp"
#include "plugin/context.hpp"
#include "fit/grouping.hpp"
#include "device/operands.cuh"
#include "device/view.cuh"

namespace pgkm::cuda {

// Resident rows in a form that an assignment made once, for the iterations to come. Its owner
// drops it when the rows change; refused: there was no memory for it.
struct PreparedRows {
    struct Part {
        const void        *values;
        std::int64_t       n;
        std::int32_t       k;
        DeviceArray<char>  memory;
    };
    std::vector<Part> parts;
    bool              refused = false;
};

// What a stage may use beside its rows.
template <typename T>
struct Stage {
    Context          &context;
    cudaStream_t      stream;
    const Control    *control;
    const Operands<T> operands; // centroids prepared for the register filter
    const Groups<T>   groups;   // rows and centroids prepared for the tiled filter
    PreparedRows     *prepared = nullptr; // given when the same rows will come again
    bool              constant = false;   // the job holds the process's constant memory
};

// ---- assignment: labels[i] of every row of the view ----
template <typename T>
void assign_generic(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <typename T>
void assign_register(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <>
void assign_register<float>(const Stage<float> &stage, const View<float> &view, std::int32_t *labels);
template <>
void assign_register<double>(const Stage<double> &stage, const View<double> &view, std::int32_t *labels);
template <typename T>
void assign_register_constant(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <typename T>
void assign_register_shared(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <typename T>
void assign_register_global(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <typename T>
void assign_generic_constant(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <typename T>
void assign_tiled(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);
template <typename T>
void assign_tensor(const Stage<T> &stage, const View<T> &view, std::int32_t *labels);

// ---- feature sums and mass sums over given labels, added to totals or masses ----
template <typename T>
using SumFunction = void (*)(const Stage<T> &, const View<T> &, const std::int32_t *labels, std::int64_t *sums);

template <typename T>
void sum_features_atomic(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_features_cluster_merge(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_features_partitioned(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_features_ballot(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_features_divide_and_conquer(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_features_sorted(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);

template <typename T>
void sum_masses_global_atomic(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_masses_partitioned_global(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_masses_partitioned_local(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);
template <typename T>
void sum_masses_partitioned_private(const Stage<T> &, const View<T> &, const std::int32_t *, std::int64_t *);

// ---- fused: labels and both sums in one read of the rows ----
template <typename T>
void fused_generic(const Stage<T> &stage, const View<T> &view, const Accumulators &sums);
// skip: groups whose list is at most this long are left out.
template <typename T>
void fused_tiled(const Stage<T> &stage, const View<T> &view, const Accumulators &sums, int skip = 0);
// Lists of up to narrow_list by the narrow kernel, longer ones by the tiled one.
inline constexpr int narrow_list = 32;
void fused_narrow(const Stage<float> &stage, const View<float> &view, const Accumulators &sums);
void fused_register(const Stage<float> &stage, const View<float> &view, const Accumulators &sums);

// The view without its first `skip` rows, cut to `rows`.
template <typename T>
View<T> slice(View<T> view, std::int64_t skip, std::int64_t rows)
{
    view.values += skip * view.d;
    if (view.weights != nullptr)
        view.weights += skip;
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

// The same for a kernel that does all terms in float64, which some devices do at a sixty-fourth of their rate: a quarter
// of what the device declares at most.
template <typename T, typename Body>
void in_exact_launches(const Stage<T> &stage, const View<T> &view, double rate, Body &&body)
{
    in_launches(view, std::min(rate, float64_rate(stage.context.facts) / 4), body);
}

inline int blocks_for(std::int64_t work, int per_block, int most)
{
    return static_cast<int>(std::clamp<std::int64_t>((work + per_block - 1) / per_block, 1, most));
}

} // namespace pgkm::cuda
