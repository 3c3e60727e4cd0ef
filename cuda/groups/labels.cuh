// labels.cuh (groups) - the nearest of a problem's centroids, which lie in shared memory, to one row or a few. A
// labeller says how: FilteredLabels for float32 rows of at most 16 features, ExactLabels for all others.
//
// FilteredLabels. Rows lie in registers, centroids in shared memory, both padded with zeros to D features. Float32 sums
// of squares are a filter (best.cuh); rows that it leaves open are settled by the contract's distance over all
// centroids.
//
// ExactLabels. The contract's distance (numeric/contract.hpp), eight centroids at a time.
//
// Threads: each sees to rows of its own; stage_centroids() wants a barrier behind it.
#pragma once

#include "device/best.cuh"
#include "device/exact.cuh"
#include "device/load_row.cuh"
#include "groups/groups.hpp"

namespace pgkm::cuda {

template <int D>
struct alignas(D % 4 == 0 ? 16 : 4) GroupRow {
    float x[D]; // zero beyond d
};

template <int D>
__device__ inline GroupRow<D> load_group_row(const View<float> &view, std::int64_t row)
{
    GroupRow<D> r;
    load_row<D>(view.values, row, view.d, r.x);
    return r;
}

// The contract's label of a row; padded features would add fma(0, 0, sum) and are left out.
template <int D>
__device__ __noinline__ int settle_group_row(const float *row, int d, const float *centroids, int k)
{
    Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
    for (int j = 0; j < k; ++j) {
        const double distance = exact_distance(row, centroids + j * D, d);
        if (distance < best.distance)
            best = {distance, j};
    }
    return best.label;
}

// Labels of R rows at once (a centroid is read once for all of them); row i is number at[i] of the view.
template <int D, int R>
__device__ inline void labels_of(const View<float> &view, const GroupRow<D> (&row)[R], const std::int32_t (&at)[R],
                                 const float *centroids, int (&label)[R])
{
    Best best[R];
#pragma unroll
    for (int i = 0; i < R; ++i)
        best[i] = Best::none();
#pragma unroll 1
    for (int j = 0; j < view.k; ++j) {
        alignas(16) float c[D];
        load_row<D>(centroids, j, D, c);
#pragma unroll
        for (int i = 0; i < R; ++i) {
            float sum = 0.0f;
#pragma unroll
            for (int f = 0; f < D; ++f) {
                const float difference = row[i].x[f] - c[f];
                sum = __fmaf_rn(difference, difference, sum);
            }
            best[i].take(sum, j);
        }
    }
#pragma unroll
    for (int i = 0; i < R; ++i)
        label[i] = best[i].is_sole(D)
                       ? best[i].index
                       : settle_group_row<D>(view.values + std::int64_t{at[i]} * view.d, view.d, centroids, view.k);
}

// A labeller has: Element, the type of the rows; pitch(d), the features of a centroid in shared memory; blocks, how
// many of them a multiprocessor should hold; label(), the label of one row. Centroids are aligned to 16 bytes.
template <int D>
struct FilteredLabels {
    using Element = float;
    static constexpr bool filtered = true;
    static constexpr int blocks = D <= 8 ? 3 : 2;
    __host__ __device__ static constexpr int pitch(int) { return D; }
    __device__ static int label(const View<float> &view, std::int64_t row, const float *centroids)
    {
        const GroupRow<D> rows[1] = {load_group_row<D>(view, row)};
        const std::int32_t at[1] = {static_cast<std::int32_t>(row)};
        int label[1];
        labels_of(view, rows, at, centroids, label);
        return label[0];
    }
};

template <typename T>
struct ExactLabels {
    using Element = T;
    static constexpr bool filtered = false;
    static constexpr int blocks = 1;
    __host__ __device__ static constexpr int pitch(int d) { return d; }
    __device__ static int label(const View<T> &view, std::int64_t row, const T *centroids)
    {
        return nearest_by_thread(view.values + row * view.d, centroids, view.k, view.d).label;
    }
};

// Calls use(labeller) with the labeller for rows of d features.
template <typename T, typename Use>
void with_labels(int d, Use &&use)
{
    if constexpr (sizeof(T) == 4) {
        if (d <= 2)
            return use(FilteredLabels<2>());
        if (d <= 4)
            return use(FilteredLabels<4>());
        if (d <= 8)
            return use(FilteredLabels<8>());
        if (d <= 16)
            return use(FilteredLabels<16>());
    }
    use(ExactLabels<T>());
}

// The centroids of this block's problem into shared memory, padded with zeros to the labeller's pitch.
template <typename Labels, typename T>
__device__ inline void stage_centroids(const View<T> &view, T *centroids)
{
    const int pitch = Labels::pitch(view.d);
    for (int i = threadIdx.x; i < view.k * pitch; i += group_threads) {
        const int j = i / pitch, f = i - j * pitch;
        centroids[i] = f < view.d ? view.centroids[j * view.d + f] : T{0};
    }
}

} // namespace pgkm::cuda
