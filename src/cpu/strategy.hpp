// strategy.hpp - the names of what a caller may force on the CPU backend.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace pgkm::cpu {

enum class Assignment { automatic, direct, tiled, hamerly };

// In ascending order of preference.
enum class InstructionSet { scalar, sse4, avx2, avx512, neon };
inline constexpr int instruction_set_count = 5;

struct Strategy {
    Assignment assignment = Assignment::automatic;
    InstructionSet instruction_set = InstructionSet::scalar; // never "auto": resolved at open()
};

// Whether a fused multiply-add is one instruction, not a function call.
inline bool has_fused(InstructionSet set)
{
    return set == InstructionSet::avx2 || set == InstructionSet::avx512 || set == InstructionSet::neon;
}

const char *name_of(InstructionSet set);
const char *name_of(Assignment assignment);
bool is_supported(InstructionSet set); // by this CPU and this build
InstructionSet best_instruction_set();

// Resolves the forced names; throws PGKM_UNSUPPORTED and lists what there is.
Strategy parse_strategy(const PgkmTuning &tuning);

// The table's strategies(): a NULL-ended list.
const char *const *strategy_names(const char *stage);

} // namespace pgkm::cpu
