// lowest-inl.hpp - the lowest scores of tile_vectors of points, in registers. Included once per target, after
// per_target.hpp.
#include "hwy/highway.h"

#include "cpu/kernels/score_kernels.hpp"

#if defined(PGKM_LOWEST_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PGKM_LOWEST_INL
#undef PGKM_LOWEST_INL
#else
#define PGKM_LOWEST_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

inline constexpr hn::ScalableTag<float> single;
using SingleVector = hn::Vec<decltype(single)>;
inline constexpr int single_lanes = static_cast<int>(hn::MaxLanes(single));

struct LowestVectors {
    SingleVector best[tile_vectors], second[tile_vectors], index[tile_vectors];

    // Those of the points from i on.
    HWY_INLINE void load(const Lowest &from, int i)
    {
        for (int v = 0; v < tile_vectors; ++v, i += single_lanes) {
            best[v] = hn::Load(single, from.best + i);
            second[v] = hn::Load(single, from.second + i);
            index[v] = hn::Load(single, from.index + i);
        }
    }
    HWY_INLINE void store(const Lowest &to, int i) const
    {
        for (int v = 0; v < tile_vectors; ++v, i += single_lanes) {
            hn::Store(best[v], single, to.best + i);
            hn::Store(second[v], single, to.second + i);
            hn::Store(index[v], single, to.index + i);
        }
    }
    HWY_INLINE void enter(int v, SingleVector score, SingleVector number)
    {
        const auto lower = hn::Lt(score, best[v]);
        second[v] = hn::Min(second[v], hn::Max(score, best[v]));
        best[v] = hn::Min(score, best[v]);
        index[v] = hn::IfThenElse(lower, number, index[v]);
    }
};

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // toggle
