// instruction_set.hpp - the instruction sets that kernels are compiled for, of which a context uses one.
#pragma once

#include <cstdint>

namespace pgkm::cpu {

// In ascending order of preference.
enum class InstructionSet { scalar, sse4, avx2, avx512, neon };
inline constexpr int instruction_set_count = 5;

// Whether a fused multiply-add is one instruction, not a function call.
inline bool has_fused(InstructionSet set)
{
    return set == InstructionSet::avx2 || set == InstructionSet::avx512 || set == InstructionSet::neon;
}

const char *name_of(InstructionSet set); // a static string
bool is_supported(InstructionSet set);   // by this CPU and this build
InstructionSet best_instruction_set();
std::int64_t highway_target(InstructionSet set); // Highway's bits for it

// The set that a caller forces; the best for NULL and "auto". Throws Error(PGKM_UNSUPPORTED), which lists those
// that run here.
InstructionSet parse_instruction_set(const char *name);

// The table's strategies(): a static NULL-ended list of names. `kind` is "instruction_set", for the sets that run
// here, or a kind of backend/strategies.hpp.
const char *const *strategy_names(const char *kind) noexcept;

// Whether the processor has AVX-512's products of pairs of 16-bit integers with their sums.
inline bool has_vnni()
{
#if defined(__x86_64__)
    static const bool has = __builtin_cpu_supports("avx512vnni") != 0;
    return has;
#else
    return false;
#endif
}

} // namespace pgkm::cpu
