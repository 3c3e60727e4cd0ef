// list_kernels.cpp - bounds of rows, and lists of centroids.
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

// distance_above() and distance_below() of bounds.hpp on vectors.
void roots(const double *squares, int count, float *above, float *below)
{
    const hn::Rebind<float, Tag> narrow;
    const auto largest = hn::Set(tag, static_cast<double>(std::numeric_limits<float>::max()));
    const auto step = hn::Set(narrow, outward_step);
    for (int i = 0; i < count; i += lanes) {
        const Vector root = hn::Sqrt(hn::LoadU(tag, squares + i));
        if (above != nullptr)
            hn::StoreU(hn::Add(hn::Mul(hn::DemoteTo(narrow, root), hn::Set(narrow, 1.0f + outward)), step), narrow,
                       above + i);
        if (below != nullptr)
            hn::StoreU(
                hn::Sub(hn::Mul(hn::DemoteTo(narrow, hn::Min(root, largest)), hn::Set(narrow, 1.0f - outward)), step),
                narrow, below + i);
    }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(ListKernels, list_kernels, screen, {tighten<float>, tighten<double>}, select, roots)
