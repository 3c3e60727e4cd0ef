// list_kernels.cpp - bounds of rows, lists of centroids, and exact distances to those that are listed.
//
// Rows of a block lie feature by feature, so that lanes run over rows; four listed centroids share the loads.
#include "cpu/kernels/list_kernels.hpp"

#include <algorithm>
#include <limits>

#define HWY_TARGET_INCLUDE "cpu/kernels/list_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/bounds.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// Writes the integers of the mask, and then others to a whole vector; returns how many are right. (A compressing store
// to memory takes a hundred cycles on some processors.)
template <typename V, typename M>
HWY_INLINE int list(V integers, M mask, std::int32_t *to)
{
    const hn::DFromV<V> tag;
    hn::StoreU(hn::Compress(integers, mask), tag, to);
    return static_cast<int>(hn::CountTrue(tag, mask));
}

int screen(const std::int32_t *labels, int count, const Drift &drift, float *upper, float *lower, std::int32_t *rows)
{
    const hn::ScalableTag<float> tag;
    const hn::RebindToSigned<decltype(tag)> integers;
    const int lanes = static_cast<int>(hn::Lanes(tag));
    const auto grow = hn::Set(tag, 1.0f + outward), share = hn::Set(tag, outward);
    int found = 0, i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto label = hn::LoadU(integers, labels + i);
        const auto low = hn::LoadU(tag, lower + i);
        const auto u = hn::Mul(hn::Add(hn::LoadU(tag, upper + i), hn::GatherIndex(tag, drift.own, label)), grow);
        const auto l = hn::Sub(hn::Sub(low, hn::GatherIndex(tag, drift.others, label)), hn::Mul(low, share));
        hn::StoreU(u, tag, upper + i);
        hn::StoreU(l, tag, lower + i);
        const auto safe = hn::Lt(u, hn::Max(l, hn::GatherIndex(tag, drift.half, label)));
        const auto index = hn::Add(hn::Iota(integers, 0), hn::Set(integers, i));
        found += list(index, hn::RebindMask(integers, hn::Not(safe)), rows + found);
    }
    for (; i < count; ++i) {
        const auto label = static_cast<std::size_t>(labels[i]);
        upper[i] = (upper[i] + drift.own[label]) * (1.0f + outward);
        lower[i] = (lower[i] - drift.others[label]) - lower[i] * outward;
        if (!(upper[i] < std::max(lower[i], drift.half[label])))
            rows[found++] = i;
    }
    return found;
}

// |x - c|^2 in any order: good for a bound, whose margin covers the rounding of every order.
template <typename T>
HWY_INLINE double square_any_order(const T *x, const T *c, int d)
{
    double sum = 0.0;
    int f = 0;
    if (d >= lanes) {
        Vector sums = hn::Zero(tag);
        for (; f + lanes <= d; f += lanes) {
            const Vector difference = hn::Sub(load_wide(x + f), load_wide(c + f));
            sums = hn::MulAdd(difference, difference, sums);
        }
        sum = hn::GetLane(hn::SumOfLanes(tag, sums));
    }
    for (; f < d; ++f) {
        const double difference = static_cast<double>(x[f]) - static_cast<double>(c[f]);
        sum += difference * difference;
    }
    return sum;
}

template <typename T>
int tighten(const T *values, int d, const T *centroids, const std::int32_t *labels, const Drift &drift,
            const float *lower, float *upper, std::int32_t *rows, int count)
{
    int open = 0;
    for (int i = 0; i < count; ++i) {
        const std::int32_t row = rows[i];
        const auto label = static_cast<std::ptrdiff_t>(labels[row]);
        const float u =
            distance_above(square_any_order(values + static_cast<std::ptrdiff_t>(row) * d, centroids + label * d, d));
        upper[row] = u;
        rows[open] = row;
        open += !(u < std::max(lower[row], drift.half[label]));
    }
    return open;
}

int select(const float *distance, int count, float radius, std::int32_t *to, float *beyond)
{
    const hn::ScalableTag<float> tag;
    const hn::RebindToSigned<decltype(tag)> integers;
    const int lanes = static_cast<int>(hn::Lanes(tag));
    const auto limit = hn::Set(tag, radius);
    const auto infinity = hn::Set(tag, std::numeric_limits<float>::infinity());
    auto smallest = infinity;
    int found = 0, j = 0;
    for (; j + lanes <= count; j += lanes) {
        const auto value = hn::LoadU(tag, distance + j);
        const auto near = hn::Le(value, limit);
        smallest = hn::Min(smallest, hn::IfThenElse(near, infinity, value));
        if (hn::AllFalse(tag, near))
            continue;
        const auto index = hn::Add(hn::Iota(integers, 0), hn::Set(integers, j));
        found += list(index, hn::RebindMask(integers, near), to + found);
    }
    float rest = hn::GetLane(hn::MinOfLanes(tag, smallest));
    for (; j < count; ++j) {
        if (distance[j] <= radius)
            to[found++] = j;
        else
            rest = std::min(rest, distance[j]);
    }
    *beyond = std::min(*beyond, rest);
    return found;
}

// Distances of V vectors of points to list_panel centroids.
template <int D_, int V>
HWY_INLINE void tile(const double *points, int width, int d, const double *wide, const std::int32_t *list,
                     Vector (&sum)[list_panel][V])
{
    const int features = D_ == 0 ? d : D_;
    const double *c[list_panel];
    HWY_UNROLL(4)
    for (int j = 0; j < list_panel; ++j) {
        c[j] = wide + static_cast<std::ptrdiff_t>(list[j]) * features;
        HWY_UNROLL(4)
        for (int v = 0; v < V; ++v)
            sum[j][v] = hn::Zero(tag);
    }
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

template <int D_, int V>
HWY_INLINE void nearest_group(const double *points, int width, int d, const double *wide, const std::int32_t *list,
                              int count, double *best, double *second, double *label)
{
    Vector b[V], s[V], l[V];
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
        b[v] = hn::Load(tag, best + v * lanes);
        s[v] = hn::Load(tag, second + v * lanes);
        l[v] = hn::Load(tag, label + v * lanes);
    }
    for (int q = 0; q < count; q += list_panel) {
        Vector sum[list_panel][V];
        tile<D_, V>(points, width, d, wide, list + q, sum);
        HWY_UNROLL(4)
        for (int j = 0; j < list_panel; ++j) {
            const Vector index = hn::Set(tag, static_cast<double>(list[q + j]));
            HWY_UNROLL(4)
            for (int v = 0; v < V; ++v) {
                const auto nearer = hn::Lt(sum[j][v], b[v]);
                s[v] = hn::Min(s[v], hn::Max(sum[j][v], b[v]));
                b[v] = hn::Min(sum[j][v], b[v]);
                l[v] = hn::IfThenElse(nearer, index, l[v]);
            }
        }
    }
    HWY_UNROLL(4)
    for (int v = 0; v < V; ++v) {
        hn::Store(b[v], tag, best + v * lanes);
        hn::Store(s[v], tag, second + v * lanes);
        hn::Store(l[v], tag, label + v * lanes);
    }
}

template <int D_>
void nearest_for(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
                 double *best, double *second, double *label)
{
    int i = 0;
    for (; i + tile_vectors * lanes <= width; i += tile_vectors * lanes)
        nearest_group<D_, tile_vectors>(block + i, width, d, wide, list, count, best + i, second + i, label + i);
    for (; i + 2 * lanes <= width; i += 2 * lanes)
        nearest_group<D_, 2>(block + i, width, d, wide, list, count, best + i, second + i, label + i);
    for (; i < width; i += lanes)
        nearest_group<D_, 1>(block + i, width, d, wide, list, count, best + i, second + i, label + i);
}

void nearest(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
             double *best, double *second, double *label)
{
    static constexpr decltype(&nearest_for<0>) by_features[] = {nearest_for<0>, nearest_for<1>, nearest_for<2>,
                                                                nearest_for<3>, nearest_for<4>};
    by_features[d <= 4 ? d : 0](block, width, d, wide, list, count, best, second, label);
}

// distance_below() of bounds.hpp on roots that float32 holds.
HWY_INLINE auto root_below(Vector root)
{
    const hn::Rebind<float, Tag> narrow;
    return hn::Sub(hn::Mul(hn::DemoteTo(narrow, root), hn::Set(narrow, 1.0f - outward)), hn::Set(narrow, outward_step));
}

// distance_above() and distance_below() of bounds.hpp on vectors.
void roots(const double *squares, int count, float *above, float *below)
{
    const hn::Rebind<float, Tag> narrow;
    const auto largest = hn::Set(tag, static_cast<double>(std::numeric_limits<float>::max()));
    const auto step = hn::Set(narrow, outward_step);
    for (int i = 0; i < count; i += lanes) {
        const Vector root = hn::Sqrt(hn::LoadU(tag, squares + i));
        hn::StoreU(hn::Add(hn::Mul(hn::DemoteTo(narrow, root), hn::Set(narrow, 1.0f + outward)), step), narrow,
                   above + i);
        if (below != nullptr)
            hn::StoreU(root_below(hn::Min(root, largest)), narrow, below + i);
    }
}

void distances(const double *block, int width, int d, const double *wide, const std::int32_t *list, int count,
               double *out)
{
    for (int q = 0; q < count; q += list_panel) {
        std::int32_t ids[list_panel];
        for (int j = 0; j < list_panel; ++j)
            ids[j] = list[std::min(q + j, count - 1)];
        for (int i = 0; i < width; i += lanes) {
            Vector sum[list_panel][1];
            tile<0, 1>(block + i, width, d, wide, ids, sum);
            for (int j = 0; j < std::min(list_panel, count - q); ++j)
                hn::Store(sum[j][0], tag, out + static_cast<std::ptrdiff_t>(q + j) * width + i);
        }
    }
}

template <int D_>
void apart_for(const double *block, int width, int d, const double *wide, int count, float *out)
{
    const hn::Rebind<float, Tag> narrow;
    const auto largest = hn::Set(tag, static_cast<double>(std::numeric_limits<float>::max()));
    for (int q = 0; q < count; q += list_panel) {
        std::int32_t ids[list_panel];
        for (int j = 0; j < list_panel; ++j)
            ids[j] = std::min(q + j, count - 1);
        for (int i = 0; i < width; i += lanes) {
            Vector sum[list_panel][1];
            tile<D_, 1>(block + i, width, d, wide, ids, sum);
            HWY_UNROLL(4)
            for (int j = 0; j < list_panel; ++j)
                hn::StoreU(hn::Max(hn::Zero(narrow), root_below(hn::Min(hn::Sqrt(sum[j][0]), largest))), narrow,
                           out + static_cast<std::ptrdiff_t>(q + j) * width + i);
        }
    }
}

void apart(const double *block, int width, int d, const double *wide, int count, float *out)
{
    static constexpr decltype(&apart_for<0>) by_features[] = {apart_for<0>, apart_for<1>, apart_for<2>, apart_for<3>,
                                                              apart_for<4>};
    by_features[d <= 4 ? d : 0](block, width, d, wide, count, out);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(ListKernels, list_kernels, screen, {tighten<float>, tighten<double>}, select, nearest, roots, distances,
             apart)
