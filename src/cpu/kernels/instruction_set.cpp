// instruction_set.cpp - which instruction sets there are, and which of them run here.
#include "cpu/kernels/instruction_set.hpp"

#include <array>
#include <cstring>

#include "cpu/kernels/targets.hpp"
#include "hwy/highway.h"

#include "backend/strategies.hpp"

namespace pgkm::cpu {
namespace {

constexpr const char *set_names[instruction_set_count] = {"scalar", "sse4", "avx2", "avx512", "neon"};

// Those that run here, NULL-ended.
const char *const *supported_set_names()
{
    static const auto names = [] {
        std::array<const char *, instruction_set_count + 1> list = {};
        std::size_t count = 0;
        for (int set = 0; set < instruction_set_count; ++set)
            if (is_supported(static_cast<InstructionSet>(set)))
                list[count++] = set_names[set];
        return list;
    }();
    return names.data();
}

} // namespace

const char *name_of(InstructionSet set)
{
    return set_names[static_cast<int>(set)];
}

std::int64_t highway_target(InstructionSet set)
{
    switch (set) {
    case InstructionSet::sse4:
        return HWY_SSE4;
    case InstructionSet::avx2:
        return HWY_AVX2;
    case InstructionSet::avx512:
        return HWY_AVX3;
    case InstructionSet::neon:
#ifdef HWY_NEON_WITHOUT_AES // a target of later Highway versions, next to NEON
        return HWY_NEON | HWY_NEON_WITHOUT_AES;
#else
        return HWY_NEON;
#endif
    case InstructionSet::scalar:
        break;
    }
    return HWY_SCALAR | HWY_EMU128;
}

bool is_supported(InstructionSet set)
{
    // Asked once: the processor's answer (CPUID) takes some 10 us in a virtual machine, as long as a small fit.
    static const std::int64_t supported = hwy::SupportedTargets();
    return set == InstructionSet::scalar || (highway_target(set) & HWY_TARGETS & supported) != 0;
}

InstructionSet best_instruction_set()
{
    int best = 0;
    for (int set = 1; set < instruction_set_count; ++set)
        if (is_supported(static_cast<InstructionSet>(set)))
            best = set;
    return static_cast<InstructionSet>(best);
}

InstructionSet parse_instruction_set(const char *name)
{
    if (name == nullptr || std::strcmp(name, "auto") == 0)
        return best_instruction_set();
    for (int set = 0; set < instruction_set_count; ++set)
        if (std::strcmp(name, set_names[set]) == 0 && is_supported(static_cast<InstructionSet>(set)))
            return static_cast<InstructionSet>(set);
    throw_no_strategy(on_cpu, "instruction_set", name, supported_set_names());
}

const char *const *strategy_names(const char *kind) noexcept
{
    const bool sets = kind != nullptr && std::strcmp(kind, "instruction_set") == 0;
    return sets ? supported_set_names() : pgkm::strategy_names(on_cpu, kind);
}

} // namespace pgkm::cpu
