// exact_kernels.cpp - the contract's D of rows of a block and centroids, and of single pairs.
//
// Rows of a block lie feature by feature (pack-inl.hpp), so that lanes run over rows; four centroids share the loads.
// Of pairs, differences are taken by vectors, and eight sums go side by side, one feature after the other.
#include "cpu/kernels/exact_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#define HWY_TARGET_INCLUDE "cpu/kernels/exact_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/ahead.hpp"
#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
template <typename T>
void pack(const T *const *rows, int count, int d, int width, double *block)
{
    pack_rows<T>(rows, count, d, nullptr, width, block);
}

// Distances of V vectors of points to list_panel centroids.
template <int D_, int V>
HWY_INLINE void tile(const double *points, int width, int d, const double *const (&c)[list_panel],
                     Vector (&sum)[list_panel][V])
{
    const int features = D_ == 0 ? d : D_;
    HWY_UNROLL(4)
    for (int j = 0; j < list_panel; ++j)
        HWY_UNROLL(4)
    for (int v = 0; v < V; ++v)
        sum[j][v] = hn::Zero(tag);
    for (int f = 0; f < features; ++f) {
        Vector x[V];
        HWY_UNROLL(4)
        for (int v = 0; v < V; ++v)
            x[v] = hn::Load(tag, points + static_cast<std::ptrdiff_t>(f) * width + v * lanes);
        HWY_UNROLL(4)
        for (int j = 0; j < list_panel; ++j) {
            const Vector centroid = hn::Set(tag, c[j][f]);
            HWY_UNROLL(4)
            for (int v = 0; v < V; ++v)
                sum[j][v] = add_square(hn::Sub(x[v], centroid), sum[j][v]);
        }
    }
}

// Of listed centroids, with the second best; or of those from `first` on, alone.
template <int D_, int V, bool Listed>
HWY_INLINE void nearest_group(const double *points, int width, int d, const double *wide, const std::int32_t *list,
                              std::int64_t first, int count, double *best, double *second, double *label)
{
    const std::ptrdiff_t features = D_ == 0 ? d : D_;
    Vector b[V], s[V], l[V];
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
        b[v] = hn::Load(tag, best + v * lanes);
        s[v] = Listed ? hn::Load(tag, second + v * lanes) : b[v];
        l[v] = hn::Load(tag, label + v * lanes);
    }
    Vector index = hn::Set(tag, static_cast<double>(first));
    wide += first * features;
    for (int q = 0; q < count; q += list_panel) {
        const double *c[list_panel];
        HWY_UNROLL(4)
        for (int j = 0; j < list_panel; ++j)
            c[j] = wide + (Listed ? list[q + j] : q + j) * features;
        Vector sum[list_panel][V];
        tile<D_, V>(points, width, d, c, sum);
        HWY_UNROLL(4)
        for (int j = 0; j < list_panel; ++j) {
            if constexpr (Listed)
                index = hn::Set(tag, static_cast<double>(list[q + j]));
            HWY_UNROLL(4)
            for (int v = 0; v < V; ++v) {
                const auto nearer = hn::Lt(sum[j][v], b[v]); // strictly: the lowest index stays on a tie
                if constexpr (Listed)
                    s[v] = hn::Min(s[v], hn::Max(sum[j][v], b[v]));
                b[v] = hn::Min(sum[j][v], b[v]);
                l[v] = hn::IfThenElse(nearer, index, l[v]);
            }
            if constexpr (!Listed)
                index = hn::Add(index, hn::Set(tag, 1.0));
        }
    }
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
        hn::Store(b[v], tag, best + v * lanes);
        if constexpr (Listed)
            hn::Store(s[v], tag, second + v * lanes);
        hn::Store(l[v], tag, label + v * lanes);
    }
}

template <int D_>
void nearest_listed_for(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
                        double *best, double *second, double *label)
{
    int i = 0;
    const auto go_by = [&](auto vectors) {
        constexpr int V = decltype(vectors)::value;
        for (; i + V * lanes <= width; i += V * lanes)
            nearest_group<D_, V, true>(block + i, width, d, wide, list, 0, count, best + i, second + i, label + i);
    };
    go_by(std::integral_constant<int, tile_vectors>());
    go_by(std::integral_constant<int, 2>());
    go_by(std::integral_constant<int, 1>());
}

void nearest_listed(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
                    double *best, double *second, double *label)
{
    static constexpr decltype(&nearest_listed_for<0>) by_features[] = {nearest_listed_for<0>, nearest_listed_for<1>,
                                                                       nearest_listed_for<2>, nearest_listed_for<3>,
                                                                       nearest_listed_for<4>};
    by_features[d <= 4 ? d : 0](block, width, d, wide, list, count, best, second, label);
}

template <int D_>
void nearest_for(const double *block, int width, int d, const double *wide, std::int64_t first, int count, double *best,
                 double *label)
{
    for (int i = 0; i < width; i += tile_vectors * lanes)
        nearest_group<D_, tile_vectors, false>(block + i, width, d, wide, nullptr, first, count, best + i, nullptr,
                                               label + i);
}

void nearest(const double *block, int width, int d, const double *wide, std::int64_t first, int count, double *best,
             double *label)
{
    static constexpr decltype(&nearest_for<0>) by_features[] = {nearest_for<0>, nearest_for<1>, nearest_for<2>,
                                                                nearest_for<3>, nearest_for<4>, nearest_for<5>,
                                                                nearest_for<6>, nearest_for<7>, nearest_for<8>};
    by_features[d <= 8 ? d : 0](block, width, d, wide, first, count, best, label);
}

void distances(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
               double *out)
{
    for (int q = 0; q < count; q += list_panel) {
        const double *c[list_panel];
        for (int j = 0; j < list_panel; ++j)
            c[j] = wide + std::ptrdiff_t{list[std::min(q + j, count - 1)]} * d;
        for (int i = 0; i < width; i += lanes) {
            Vector sum[list_panel][1];
            tile<0, 1>(block + i, width, d, c, sum);
            for (int j = 0; j < std::min(list_panel, count - q); ++j)
                hn::Store(sum[j][0], tag, out + static_cast<std::ptrdiff_t>(q + j) * width + i);
        }
    }
}

inline constexpr int pairs = 8;

// The differences of one pair's features come as vectors; the sum must take them one by one.
template <typename T>
HWY_INLINE void eight_pairs(const T *const *x, const T *const *c, int d, double *out)
{
    HWY_ALIGN_MAX double difference[pairs][lanes];
    double sum[pairs] = {};
    int f = 0;
    for (; f + lanes <= d; f += lanes) {
        HWY_UNROLL(8)
        for (int p = 0; p < pairs; ++p)
            hn::Store(hn::Sub(load_wide(x[p] + f), load_wide(c[p] + f)), tag, difference[p]);
        for (int i = 0; i < lanes; ++i) {
            HWY_UNROLL(8)
            for (int p = 0; p < pairs; ++p)
                sum[p] = std::fma(difference[p][i], difference[p][i], sum[p]);
        }
    }
    for (; f < d; ++f) {
        for (int p = 0; p < pairs; ++p) {
            const double rest = static_cast<double>(x[p][f]) - static_cast<double>(c[p][f]);
            sum[p] = std::fma(rest, rest, sum[p]);
        }
    }
    std::copy_n(sum, pairs, out);
}

template <typename T>
void pairs_of(const T *const *x, const T *const *c, std::int64_t count, int d, double *out)
{
    std::int64_t i = 0;
    for (; i + pairs <= count; i += pairs)
        eight_pairs(x + i, c + i, d, out + i);
    if (i == count)
        return;
    // The rest, filled up with its first pair.
    const T *last_x[pairs], *last_c[pairs];
    double last[pairs];
    for (int p = 0; p < pairs; ++p) {
        last_x[p] = x[i + p < count ? i + p : i];
        last_c[p] = c[i + p < count ? i + p : i];
    }
    eight_pairs(last_x, last_c, d, last);
    std::copy_n(last, count - i, out + i);
}

// Distances of x to C points by S sums for each.
template <int C, int S, typename T>
HWY_INLINE void estimate(const T *x, const T *const *c, int d, T *out)
{
    const hn::ScalableTag<T> tag;
    const int width = static_cast<int>(hn::Lanes(tag));
    hn::Vec<decltype(tag)> sum[C][S];
    HWY_UNROLL(4)
    for (int i = 0; i < C; ++i) {
        HWY_UNROLL(4)
        for (int s = 0; s < S; ++s)
            sum[i][s] = hn::Zero(tag);
    }
    int f = 0;
    for (; f + S * width <= d; f += S * width) {
        HWY_UNROLL(4)
        for (int s = 0; s < S; ++s) {
            const auto own = hn::LoadU(tag, x + f + s * width);
            HWY_UNROLL(4)
            for (int i = 0; i < C; ++i) {
                const auto difference = hn::Sub(own, hn::LoadU(tag, c[i] + f + s * width));
                sum[i][s] = hn::MulAdd(difference, difference, sum[i][s]);
            }
        }
    }
    for (int i = 0; i < C; ++i) {
        auto whole = sum[i][0];
        for (int s = 1; s < S; ++s)
            whole = hn::Add(whole, sum[i][s]);
        T rest = hn::GetLane(hn::SumOfLanes(tag, whole));
        for (int g = f; g < d; ++g)
            rest += (x[g] - c[i][g]) * (x[g] - c[i][g]);
        out[i] = rest;
    }
}

template <typename T>
void estimates(const T *x, const T *const *c, int count, int d, T *out)
{
    int i = 0;
    for (; i + 4 <= count; i += 4)
        estimate<4, 2>(x, c + i, d, out + i);
    for (; i + 2 <= count; i += 2)
        estimate<2, 4>(x, c + i, d, out + i);
    for (; i < count; ++i)
        estimate<1, 4>(x, c + i, d, out + i);
}

inline constexpr int rows_together = 4;

#if HWY_TARGET != HWY_SCALAR
// The sum of a vector's blocks of four values.
template <typename V>
HWY_INLINE void store_sum_of_blocks(V v, float *out)
{
    const hn::DFromV<V> tag;
    if constexpr (hn::MaxLanes(hn::DFromV<V>()) > 4) {
        const hn::Half<decltype(tag)> half;
        store_sum_of_blocks(hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), out);
    } else {
        hn::StoreU(v, tag, out);
    }
}
#endif

// out[r] is the sum of the values of v[r].
template <typename T, typename V>
HWY_INLINE void totals(const V (&v)[rows_together], float *out)
{
    const hn::DFromV<V> tag;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(T) == 4) {
        const hn::RepartitionToWide<decltype(tag)> wide;
        const V ab = hn::Add(hn::InterleaveLower(tag, v[0], v[1]), hn::InterleaveUpper(tag, v[0], v[1]));
        const V cd = hn::Add(hn::InterleaveLower(tag, v[2], v[3]), hn::InterleaveUpper(tag, v[2], v[3]));
        const auto pairs = hn::BitCast(wide, ab), others = hn::BitCast(wide, cd);
        store_sum_of_blocks(hn::Add(hn::BitCast(tag, hn::InterleaveLower(wide, pairs, others)),
                                    hn::BitCast(tag, hn::InterleaveUpper(wide, pairs, others))),
                            out);
        return;
    }
#endif
    for (int r = 0; r < rows_together; ++r)
        out[r] = static_cast<float>(hn::GetLane(hn::SumOfLanes(tag, v[r])));
}

// Distances of four rows to C points. The last vector of features overlaps the one before it, less what that has.
template <int C, bool Ahead, typename T>
HWY_INLINE void estimate_tile(const T *const *x, const T *const *c, int d, int stride, float *out)
{
    const hn::ScalableTag<T> tag;
    const int width = static_cast<int>(hn::Lanes(tag));
    hn::Vec<decltype(tag)> sum[C][rows_together];
    HWY_UNROLL(4)
    for (int i = 0; i < C; ++i) {
        HWY_UNROLL(4)
        for (int r = 0; r < rows_together; ++r)
            sum[i][r] = hn::Zero(tag);
    }
    const auto add = [&](int f, const auto &keep) HWY_ATTR {
        hn::Vec<decltype(tag)> own[rows_together];
        HWY_UNROLL(4)
        for (int r = 0; r < rows_together; ++r) {
            own[r] = hn::LoadU(tag, x[r] + f);
            if constexpr (Ahead)
                ask_ahead(x[r] + f, bytes_ahead);
        }
        HWY_UNROLL(4)
        for (int i = 0; i < C; ++i) {
            const auto point = hn::LoadU(tag, c[i] + f);
            HWY_UNROLL(4)
            for (int r = 0; r < rows_together; ++r) {
                const auto difference = keep(hn::Sub(own[r], point));
                sum[i][r] = hn::MulAdd(difference, difference, sum[i][r]);
            }
        }
    };
    int f = 0;
    for (; f + width <= d; f += width)
        add(f, [](auto all) HWY_ATTR { return all; });
    if (f < d && d > width) {
        const auto seen = hn::FirstN(tag, static_cast<std::size_t>(width - (d - f)));
        add(d - width, [&](auto all) HWY_ATTR { return hn::IfThenElse(seen, hn::Zero(tag), all); });
        f = d;
    }
    HWY_UNROLL(4)
    for (int i = 0; i < C; ++i)
        totals<T>(sum[i], out + static_cast<std::ptrdiff_t>(i) * stride);
    for (; f < d; ++f)
        for (int i = 0; i < C; ++i)
            for (int r = 0; r < rows_together; ++r)
                out[static_cast<std::ptrdiff_t>(i) * stride + r] +=
                    static_cast<float>((x[r][f] - c[i][f]) * (x[r][f] - c[i][f]));
}

template <int C, typename T>
HWY_INLINE int estimate_panels(const T *const *x, const T *const *c, int j, int k, int d, int stride, bool ahead,
                               float *out)
{
    for (; j + C <= k; j += C) {
        float *to = out + static_cast<std::ptrdiff_t>(j) * stride;
        if (ahead && j == 0)
            estimate_tile<C, true>(x, c, d, stride, to);
        else
            estimate_tile<C, false>(x, c + j, d, stride, to);
    }
    return j;
}

template <typename T>
void estimates_of_rows(const T *const *x, int count, const T *const *c, int k, int d, int stride, float *out)
{
    constexpr int most = tile_vectors == 4 ? 4 : 2; // points whose sums stay in registers
    const bool ahead = dense_bytes(x, count, d) > 0;
    for (int i = 0; i < count; i += rows_together) {
        const T *rows[rows_together]; // those that are not there repeat the last one
        for (int r = 0; r < rows_together; ++r)
            rows[r] = x[std::min(i + r, count - 1)];
        int j = estimate_panels<most>(rows, c, 0, k, d, stride, ahead, out + i);
        j = estimate_panels<2>(rows, c, j, k, d, stride, ahead, out + i);
        estimate_panels<1>(rows, c, j, k, d, stride, ahead, out + i);
    }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(ExactKernels, exact_kernels, {pack<float>, pack<double>}, nearest, nearest_listed, distances,
             {pairs_of<float>, pairs_of<double>}, {estimates<float>, estimates<double>},
             {estimates_of_rows<float>, estimates_of_rows<double>})
