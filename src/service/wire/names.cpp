// names.cpp - copies the names of strategies into a message and out of it: a pointer means nothing to another process.
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>
#include <string>

#include "service/wire/protocol.hpp"

namespace pgkm::service {
namespace {

constexpr const char *PgkmTuning::*members[] = {
    &PgkmTuning::assignment, &PgkmTuning::execution,        &PgkmTuning::feature_sum,
    &PgkmTuning::mass_sum,   &PgkmTuning::reduction_layout, &PgkmTuning::instruction_set,
};
static_assert(std::size(members) == std::size(StrategyNames{}.names));

} // namespace

// One copy of each for ever: there are as many as strategies and phases.
const char *static_name(const char *name)
{
    static std::mutex mutex;
    static std::set<std::string> names;
    const std::lock_guard<std::mutex> lock(mutex);
    return names.insert(name).first->c_str();
}

bool pack_names(const PgkmTuning &from, StrategyNames *to)
{
    bool all = true;
    *to = {};
    for (std::size_t i = 0; i < std::size(members); ++i) {
        const char *const name = from.*members[i] == nullptr ? "" : from.*members[i];
        all = all && std::strlen(name) < sizeof(Name);
        std::strncpy(to->names[i], name, sizeof(Name) - 1);
    }
    return all;
}

PgkmTuning view_names(StrategyNames *from)
{
    PgkmTuning tuning = {};
    for (std::size_t i = 0; i < std::size(members); ++i) {
        Name &name = from->names[i];
        name[sizeof name - 1] = '\0';
        tuning.*members[i] = name[0] == '\0' ? nullptr : name;
    }
    return tuning;
}

PgkmTuning static_names(StrategyNames *from)
{
    PgkmTuning tuning = view_names(from);
    for (const auto member : members)
        if (tuning.*member != nullptr)
            tuning.*member = static_name(tuning.*member);
    return tuning;
}

} // namespace pgkm::service
