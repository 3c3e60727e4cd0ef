// The table of strategies: what each backend has of it, and what is said of a name that it has not.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "backend/strategies.hpp"
#include "cpu/cpu_backend.hpp"
#include "numeric/error.hpp"

namespace {

using namespace pgkm;

std::vector<std::string> names(unsigned backend, const char *kind)
{
    std::vector<std::string> list;
    for (const char *const *name = strategy_names(backend, kind); *name != nullptr; ++name)
        list.push_back(*name);
    return list;
}

TEST(Strategies, EnumeratorsAndNamesLeadToEachOther)
{
    EXPECT_STREQ(name_of(Assignment::automatic), "auto");
    EXPECT_STREQ(name_of(Assignment::register_), "register");
    EXPECT_STREQ(name_of(MassSum::partitioned_private), "partitioned_private");
    EXPECT_EQ(parse_strategy<Assignment>(on_cuda, "generic_constant"), Assignment::generic_constant);
    EXPECT_EQ(parse_strategy<Execution>(on_cuda, "single_pass"), Execution::single_pass);
    EXPECT_EQ(parse_strategy<FeatureSum>(on_cuda, nullptr), FeatureSum::automatic);
    EXPECT_EQ(parse_strategy<FeatureSum>(on_cuda, "auto"), FeatureSum::automatic);
    for (const Strategy &strategy : strategies)
        for (const unsigned backend : {on_cpu, on_cuda})
            if ((strategy.backends & backend) != 0) {
                EXPECT_EQ(find_strategy(backend, strategy.kind, strategy.name), strategy.id);
            }
}

TEST(Strategies, EveryEntryIsListedOnceAndDescribed)
{
    std::size_t listed = 0;
    for (const char *kind : strategy_kind_names) {
        const std::vector<std::string> list = names(on_cuda, kind);
        EXPECT_EQ(std::set(list.begin(), list.end()).size(), list.size());
        listed += list.size();
    }
    listed += names(on_cpu, "assignment").size();
    std::size_t entries = 0;
    for (const Strategy &strategy : strategies) {
        entries += (strategy.backends & on_cpu) / on_cpu + (strategy.backends & on_cuda) / on_cuda;
        EXPECT_STRNE(strategy.description, "");
    }
    EXPECT_EQ(listed, entries);
    EXPECT_TRUE(names(on_cuda, "instruction_set").empty());
    EXPECT_TRUE(names(on_cuda, nullptr).empty());
}

TEST(Strategies, TheCpuBackendHasItsPartOfTheTable)
{
    EXPECT_EQ(names(on_cpu, "assignment"), (std::vector<std::string>{"direct", "tiled", "hamerly"}));
    const char *const *list = cpu_backend()->strategies("assignment");
    for (const std::string &name : names(on_cpu, "assignment"))
        EXPECT_EQ(*list++, name);
    EXPECT_EQ(*list, nullptr);
    EXPECT_EQ(*cpu_backend()->strategies("mass_sum"), nullptr);
}

TEST(Strategies, ANameThatABackendHasNotIsRefusedWithThoseItHas)
{
    try {
        find_strategy(on_cpu, StrategyKind::assignment, "tensor_core");
        FAIL() << "found";
    } catch (const Error &error) {
        EXPECT_EQ(error.status(), PGKM_UNSUPPORTED);
        EXPECT_STREQ(error.what(), "the CPU backend has no assignment strategy \"tensor_core\"; it has: auto, direct, "
                                   "tiled, hamerly");
    }
    EXPECT_THROW(find_strategy(on_cuda, StrategyKind::assignment, "hamerly"), Error);
    EXPECT_THROW(find_strategy(on_cuda, StrategyKind::mass_sum, "sorted"), Error);
}

} // namespace
