// names.cpp - copies the names of strategies into a message and out of it: a pointer means nothing to another process.
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "service/wire/protocol.hpp"

namespace pgkm::service {
namespace {

// Every stage's place in both structs.
template <typename Visit>
void each_stage(Visit &&visit)
{
    visit(&PgkmTuning::assignment, &StrategyNames::assignment);
    visit(&PgkmTuning::execution, &StrategyNames::execution);
    visit(&PgkmTuning::feature_sum, &StrategyNames::feature_sum);
    visit(&PgkmTuning::mass_sum, &StrategyNames::mass_sum);
    visit(&PgkmTuning::reduction_layout, &StrategyNames::reduction_layout);
    visit(&PgkmTuning::instruction_set, &StrategyNames::instruction_set);
}

// One copy of each name for ever: there are as many as strategies.
const char *keep(const char *name)
{
    static std::mutex mutex;
    static std::set<std::string> names;
    const std::lock_guard<std::mutex> lock(mutex);
    return names.insert(name).first->c_str();
}

} // namespace

bool pack_names(const PgkmTuning &from, StrategyNames *to)
{
    bool all = true;
    *to = {};
    each_stage([&](auto name, auto place) {
        const char *text = from.*name == nullptr ? "" : from.*name;
        all = all && std::strlen(text) < name_bytes;
        std::strncpy(to->*place, text, name_bytes - 1);
    });
    return all;
}

PgkmTuning view_names(StrategyNames *from)
{
    PgkmTuning tuning = {};
    each_stage([&](auto name, auto place) {
        (from->*place)[name_bytes - 1] = '\0';
        tuning.*name = (from->*place)[0] == '\0' ? nullptr : from->*place;
    });
    return tuning;
}

PgkmTuning static_names(StrategyNames *from)
{
    PgkmTuning tuning = view_names(from);
    each_stage([&](auto name, auto) {
        if (tuning.*name != nullptr)
            tuning.*name = keep(tuning.*name);
    });
    return tuning;
}

} // namespace pgkm::service
