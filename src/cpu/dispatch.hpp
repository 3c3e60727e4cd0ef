// dispatch.hpp - picks the copy of a kernel table that belongs to an instruction set.
//
// Highway's own HWY_DYNAMIC_DISPATCH knows one choice per process; contexts may be opened
// with different forced sets, even at once, so the exported table is indexed by the set of
// the context. Included by kernel sources after hwy/highway.h, in their HWY_ONCE part.
#pragma once

#include "cpu/instruction_set.hpp"

namespace pgkm::cpu {

std::int64_t highway_target(InstructionSet set);

// Inline on purpose: GetIndex() looks at the targets compiled in the including source.
inline std::size_t dispatch_index(InstructionSet set, std::size_t table_size)
{
    if (table_size == 1)
        return 0; // a build for one target
    hwy::ChosenTarget target;
    target.Update(highway_target(set));
    return target.GetIndex();
}

} // namespace pgkm::cpu

// Calls FUNC, exported by HWY_EXPORT(FUNC), as compiled for `set`.
#define PGKM_DISPATCH(FUNC, set)                                                                  \
    (HWY_DISPATCH_TABLE(FUNC)[::pgkm::cpu::dispatch_index(set, sizeof(HWY_DISPATCH_TABLE(FUNC)) / \
                                                                   sizeof(HWY_DISPATCH_TABLE(FUNC)[0]))]())
