#include "cpu/strategy.hpp"

#include <array>
#include <cstring>
#include <string>

#include "cpu/targets.hpp"
#include "hwy/highway.h"

#include "cpu/dispatch.hpp"
#include "numeric/error.hpp"

namespace pgkm::cpu {
namespace {

constexpr const char *set_names[instruction_set_count] = {"scalar", "sse4", "avx2", "avx512", "neon"};

constexpr const char *assignment_names[] = {"auto", "direct", "tiled", "hamerly", nullptr};
constexpr const char *automatic_only[] = {"auto", nullptr};

bool is_auto(const char *name)
{
    return name == nullptr || std::strcmp(name, "auto") == 0;
}

// Position of `name` in a NULL-ended list of names; throws if it is not there.
int find(const char *stage, const char *name, const char *const *names)
{
    std::string known;
    for (int i = 0; names[i] != nullptr; ++i) {
        if (std::strcmp(name, names[i]) == 0)
            return i;
        known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    throw Error(PGKM_UNSUPPORTED,
                "the CPU backend has no " + std::string(stage) + " strategy \"" + name + "\"; it has: " + known);
}

// "auto" and the sets that run here.
const char *const *supported_set_names()
{
    static const auto names = [] {
        std::array<const char *, instruction_set_count + 2> list = {"auto"};
        std::size_t count = 1;
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

const char *name_of(Assignment assignment)
{
    return assignment_names[static_cast<int>(assignment)];
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

Strategy parse_strategy(const PgkmTuning &tuning)
{
    Strategy strategy;
    if (!is_auto(tuning.assignment))
        strategy.assignment = static_cast<Assignment>(find("assignment", tuning.assignment, assignment_names));
    strategy.instruction_set = best_instruction_set();
    if (!is_auto(tuning.instruction_set)) {
        const char *name =
            supported_set_names()[find("instruction_set", tuning.instruction_set, supported_set_names())];
        for (int set = 0; set < instruction_set_count; ++set)
            if (std::strcmp(name, set_names[set]) == 0)
                strategy.instruction_set = static_cast<InstructionSet>(set);
    }
    // Choices that only a GPU has: a forced one must not be ignored in silence.
    const struct {
        const char *stage;
        const char *name;
    } others[] = {{"execution", tuning.execution}, {"feature_sum", tuning.feature_sum}, {"mass_sum", tuning.mass_sum}};
    for (const auto &other : others)
        if (!is_auto(other.name))
            find(other.stage, other.name, automatic_only);
    return strategy;
}

const char *const *strategy_names(const char *stage)
{
    if (std::strcmp(stage, "assignment") == 0)
        return assignment_names;
    if (std::strcmp(stage, "instruction_set") == 0)
        return supported_set_names();
    return automatic_only;
}

} // namespace pgkm::cpu
