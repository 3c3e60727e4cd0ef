// Generated CUDA texts, compiled by NVRTC where it is installed: random programs in every layout.
//
// PGKM_GENERATED_PROGRAMS in the environment: how many programs, instead of a handful.
#include <cstdlib>

#include <gtest/gtest.h>

#include "backend/generate/compiler.hpp"
#include "backend/generate/kernel.hpp"
#include "numeric/error.hpp"
#include "support/random_program.hpp"

namespace pgkm {
namespace {

using namespace conformance;
using generate::Layout;

const auto never = [] { return false; };

std::string text_of(const Program &program, Layout layout, bool float32, std::int32_t d)
{
    const PgkmReduction view = program.view();
    const generate::Program facts(view);
    return kernel_source(facts, make_plan(facts, layout, {132, 232448}), {float32, d});
}

TEST(GenerateCompile, RandomProgramsInEveryLayout)
{
    std::string why;
    if (!generate::has_compiler(&why))
        GTEST_SKIP() << why;
    const char *const wanted = std::getenv("PGKM_GENERATED_PROGRAMS");
    const int programs = wanted == nullptr ? 1 : std::atoi(wanted);
    for (int i = 0; i < programs; ++i) {
        const std::int32_t d = 1 + i % 6;
        const Program program = RandomProgram(static_cast<std::uint64_t>(5000 + i), d).program;
        for (int layout = 1; layout <= static_cast<int>(Layout::global); ++layout) {
            const std::string text = text_of(program, static_cast<Layout>(layout), i % 2 == 0, d);
            EXPECT_GT(generate::compile(text, layout % 2 == 0 ? 80 : 90, never).size(), 1000U) << text;
        }
    }
}

TEST(GenerateCompile, DevicesToCome)
{
    std::string why;
    if (!generate::has_compiler(&why))
        GTEST_SKIP() << why;
    const std::string text = text_of(RandomProgram(1, 2).program, Layout::block, false, 2);
    const std::vector<char> code = generate::compile(text, 999, never);
    EXPECT_NE(std::string(code.begin(), code.end()).find(".target sm_"), std::string::npos); // PTX
    EXPECT_THROW(generate::compile(text, 10, never), Error);
}

TEST(GenerateCompile, CancelAndFaultyText)
{
    std::string why;
    if (!generate::has_compiler(&why))
        GTEST_SKIP() << why;
    const auto status = [](const std::string &text, const std::function<bool()> &cancelled) {
        try {
            generate::compile(text, 90, cancelled);
            return PGKM_OK;
        } catch (const Error &error) {
            return error.status();
        }
    };
    EXPECT_EQ(status("this is no C++", never), PGKM_INTERNAL);
    EXPECT_EQ(status(text_of(RandomProgram(1, 2).program, Layout::block, false, 2), [] { return true; }),
              PGKM_CANCELLED);
}

} // namespace
} // namespace pgkm
