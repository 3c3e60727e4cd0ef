// path_kernels.cpp - the steps of a search for paths.
#include "cpu/sizes/path_kernels.hpp"

#include <algorithm>
#include <limits>

#define HWY_TARGET_INCLUDE "cpu/sizes/path_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

template <typename M, typename V, typename D>
HWY_INLINE void put_where(M mask, V values, D of, hn::TFromD<D> *to)
{
    hn::StoreU(hn::IfThenElse(mask, values, hn::LoadU(of, to)), of, to);
}

void take_steps(const SearchedNodes &nodes, std::int32_t from, double so_far, double own, const double *floors,
                const double *prices)
{
    const Vector begin = hn::Set(tag, so_far), here = hn::Set(tag, own);
    std::int32_t j = 0;
    for (; j + lanes <= nodes.count; j += lanes) {
        const Vector cost = hn::Sub(hn::Add(hn::LoadU(tag, floors + j), hn::LoadU(tag, prices + j)), here);
        const Vector distance = hn::Add(begin, hn::Max(hn::Zero(tag), cost));
        const auto nearer = hn::Lt(distance, hn::LoadU(tag, nodes.distances + j));
        if (hn::AllFalse(tag, nearer))
            continue;
        const hn::RebindToSigned<Tag> numbers;
        put_where(nearer, distance, tag, nodes.distances + j);
        put_where(nearer, distance, tag, nodes.open + j);
        put_where(hn::RebindMask(numbers, nearer), hn::Set(numbers, from), numbers, nodes.before + j);
    }
    for (; j < nodes.count; ++j) {
        const double distance = so_far + std::max(0.0, floors[j] + prices[j] - own);
        if (distance < nodes.distances[j]) {
            nodes.distances[j] = nodes.open[j] = distance;
            nodes.before[j] = from;
        }
    }
}

std::int32_t least_of(const double *values, std::int32_t count)
{
    Vector leasts = hn::Set(tag, std::numeric_limits<double>::infinity());
    std::int32_t whole = 0;
    for (; whole + lanes <= count; whole += lanes)
        leasts = hn::Min(leasts, hn::LoadU(tag, values + whole));
    double least = hn::GetLane(hn::MinOfLanes(tag, leasts));
    for (std::int32_t i = whole; i < count; ++i)
        least = std::min(least, values[i]);
    std::int32_t i = 0;
    for (const Vector wanted = hn::Set(tag, least);
         i + lanes <= count && hn::AllFalse(tag, hn::Eq(wanted, hn::LoadU(tag, values + i)));)
        i += lanes;
    return static_cast<std::int32_t>(std::find(values + i, values + count, least) - values);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(PathKernels, path_kernels, take_steps, least_of)
