// program.cpp - a program is what the compiler makes of a reduction.
#include "cpu/reduce/program.hpp"

#include <algorithm>

#include "cpu/reduce/compiler.hpp"

namespace pgkm::cpu {

BatchProgram::BatchProgram(const PgkmReduction &program, std::int32_t d) : reduction(program)
{
    Compiler(*this).run(d);
}

int BatchProgram::batch_rows() const
{
    constexpr std::int64_t cached = 256 * 1024 / 8;
    return static_cast<int>(std::clamp<std::int64_t>(cached / all_columns() / 64 * 64, 64, 512));
}

} // namespace pgkm::cpu
