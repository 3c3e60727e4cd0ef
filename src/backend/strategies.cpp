// strategies.cpp - finds strategies of a backend by name.
#include "backend/strategies.hpp"

#include <array>
#include <cstring>
#include <string>

#include "numeric/error.hpp"

namespace pgkm {
namespace {

using Names = std::array<const char *, std::size(strategies) + 1>; // NULL-ended

Names names_of(unsigned backend, int kind)
{
    Names names = {};
    std::size_t count = 0;
    for (const Strategy &strategy : strategies)
        if ((strategy.backends & backend) != 0 && static_cast<int>(strategy.kind) == kind)
            names[count++] = strategy.name;
    return names;
}

} // namespace

const char *const *strategy_names(unsigned backend, const char *kind) noexcept
{
    static const auto lists = [] {
        std::array<std::array<Names, strategy_kinds + 1>, 2> made; // the last is empty
        for (int i = 0; i <= strategy_kinds; ++i) {
            made[0][i] = names_of(on_cpu, i);
            made[1][i] = names_of(on_cuda, i);
        }
        return made;
    }();
    std::size_t i = 0;
    while (i < strategy_kinds && (kind == nullptr || std::strcmp(kind, strategy_kind_names[i]) != 0))
        ++i;
    return lists[backend == on_cuda][i].data();
}

void throw_no_strategy(unsigned backend, const char *kind, const char *name, const char *const *there)
{
    std::string text = std::string("the ") + (backend == on_cuda ? "CUDA" : "CPU") + " backend has no " + kind +
                       " strategy \"" + name + "\"; it has: auto";
    for (; *there != nullptr; ++there)
        text += std::string(", ") + *there;
    throw Error(PGKM_UNSUPPORTED, text);
}

int find_strategy(unsigned backend, StrategyKind kind, const char *name)
{
    if (name == nullptr || std::strcmp(name, "auto") == 0)
        return 0;
    for (const Strategy &strategy : strategies)
        if (strategy.kind == kind && (strategy.backends & backend) != 0 && std::strcmp(strategy.name, name) == 0)
            return strategy.id;
    const char *kind_name = strategy_kind_names[static_cast<int>(kind)];
    throw_no_strategy(backend, kind_name, name, strategy_names(backend, kind_name));
}

} // namespace pgkm
