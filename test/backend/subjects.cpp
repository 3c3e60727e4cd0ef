#include "subjects.hpp"

#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "cpu/cpu_backend.hpp"
#include "reference/reference.hpp"
#include "service_subject.hpp"
#include "support/spread_over.hpp"

namespace conformance {
namespace {

// Device memory that no case's points fit into with room to spare: the plugin must stream.
// PGKM_DEVICE_MEMORY_LIMIT overrides it.
constexpr std::uint64_t default_streaming_limit = 2 << 20;

std::string identifier(std::string text)
{
    for (char &c : text)
        if (!std::isalnum(static_cast<unsigned char>(c)))
            c = '_';
    return text;
}

std::vector<const char *> strategies(const PgkmBackend &table, const char *stage)
{
    std::vector<const char *> names;
    for (const char *const *name = table.strategies(stage); *name != nullptr; ++name)
        names.push_back(*name);
    return names;
}

void add_cpu(std::vector<Subject> &subjects)
{
    const PgkmBackend *table = pgkm::cpu_backend();
    subjects.push_back({"cpu_auto", table, -1, {}, 0, true});
    std::vector<const char *> assignments = strategies(*table, "assignment");
    assignments.insert(assignments.begin(), "auto");
    const std::vector<const char *> sets = strategies(*table, "instruction_set"); // the last is the best
    for (const char *set : sets)
        for (const char *assignment : assignments) {
            const bool best = set == sets.back(), first = assignment == assignments.front();
            if (sanitized && best && first)
                continue; // cpu_auto
            PgkmTuning tuning = {};
            tuning.assignment = assignment;
            tuning.instruction_set = set;
            const std::string name = identifier(std::string("cpu_") + set + "_" + assignment);
            subjects.push_back({name, table, -1, tuning, 0, first, !best});
        }
}

// Three devices that rows and sums are spread over, where there are fewer the same ones again.
std::vector<std::int32_t> three_of(const std::vector<std::int32_t> &devices)
{
    std::vector<std::int32_t> three;
    for (std::size_t i = 0; i < 3; ++i)
        three.push_back(devices[i % devices.size()]);
    return three;
}

// The service with the list, which it opens itself.
const PgkmBackend *spread_service()
{
    static const PgkmBackend table = [] {
        PgkmBackend made = *service_table();
        made.open = [](const PgkmOpen *options, PgkmContext **context, PgkmError *error) {
            const std::vector<std::int32_t> devices = three_of({0});
            PgkmOpen open = *options;
            open.devices = devices.data();
            open.n_devices = static_cast<std::int32_t>(devices.size());
            return service_table()->open(&open, context, error);
        };
        return made;
    }();
    return &table;
}

struct Plugin {
    const PgkmBackend *table = nullptr;
    std::int32_t device = -1;
    std::string absence;
    std::vector<std::int32_t> devices; // all that can be used
};

Plugin load_plugin()
{
    const char *path = std::getenv("PGKM_PLUGIN");
    if (path == nullptr)
        return {nullptr, -1, "PGKM_PLUGIN is not set", {}};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return {nullptr, -1, dlerror(), {}};
    using Entry = const PgkmBackend *(*)(std::uint32_t);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, PGKM_BACKEND_ENTRY));
    const PgkmBackend *table = entry == nullptr ? nullptr : entry(PGKM_BACKEND_ABI);
    if (table == nullptr)
        return {nullptr, -1, std::string(path) + " does not serve this version of the table", {}};
    std::array<PgkmDevice, 16> devices = {};
    std::int32_t count = 0;
    PgkmError error = {};
    if (table->probe(devices.data(), static_cast<std::int32_t>(devices.size()), &count, &error) != PGKM_OK)
        return {nullptr, -1, error.text, {}};
    Plugin found = {nullptr, -1, "no device", {}};
    for (std::size_t i = 0; i < devices.size() && static_cast<std::int32_t>(i) < count; ++i) {
        if (devices[i].usable != 0)
            found.devices.push_back(devices[i].ordinal);
        else
            found.absence = devices[i].reason;
    }
    if (!found.devices.empty()) {
        found.table = table;
        found.device = found.devices[0];
        found.absence.clear();
    }
    return found;
}

const Plugin &plugin()
{
    static const Plugin loaded = load_plugin();
    return loaded;
}

const PgkmBackend *spread_cpu()
{
    static const PgkmBackend *const table = pgkm::test::spread_over<0>(pgkm::cpu_backend(), three_of({0}));
    return table;
}

const PgkmBackend *spread_plugin()
{
    static const PgkmBackend *const table = pgkm::test::spread_over<1>(plugin().table, three_of(plugin().devices));
    return table;
}

void add_plugin(std::vector<Subject> &subjects)
{
    const PgkmBackend *table = plugin().table;
    if (table == nullptr)
        return;
    const std::string name = identifier(table->name);
    const auto add = [&](const std::string &what, const PgkmTuning &tuning, std::uint64_t limit, bool seeds) {
        subjects.push_back({identifier(name + "_" + what), table, plugin().device, tuning, limit, seeds});
    };
    const char *limit_text = std::getenv("PGKM_DEVICE_MEMORY_LIMIT");
    const std::uint64_t limit =
        limit_text == nullptr ? default_streaming_limit : std::strtoull(limit_text, nullptr, 10);
    add("auto", {}, 0, true);
    add("auto_streamed", {}, limit, true);
    subjects.push_back({name + "_spread", spread_plugin(), plugin().device, {}, 0, true});
    subjects.push_back({name + "_spread_streamed", spread_plugin(), plugin().device, {}, limit, true});
    struct Stage {
        const char *name;
        const char *PgkmTuning::*member;
    };
    for (const Stage stage : {Stage{"assignment", &PgkmTuning::assignment},
                              {"execution", &PgkmTuning::execution},
                              {"feature_sum", &PgkmTuning::feature_sum},
                              {"mass_sum", &PgkmTuning::mass_sum}})
        for (const char *strategy : strategies(*table, stage.name)) {
            PgkmTuning tuning = {};
            tuning.*stage.member = strategy;
            const std::string what = std::string(stage.name) + "_" + strategy;
            // Other steps of k-means++ than those of `auto`: cuda/seed/README.md.
            const bool seeds = std::strcmp(strategy, "round_trip") == 0 || std::strcmp(strategy, "multi_pass") == 0;
            add(what, tuning, 0, seeds);
            add(what + "_streamed", tuning, limit, false);
        }
}

} // namespace

const Subject &reference_subject()
{
    static const Subject subject = {"reference", pgkm::reference_backend(), -1, {}, 0, true};
    return subject;
}

const std::vector<Subject> &all_subjects()
{
    static const std::vector<Subject> subjects = [] {
        std::vector<Subject> made;
        add_cpu(made);
        made.push_back({"spread", spread_cpu(), -1, {}, 0, true});
        made.push_back({"service", service_table(), -1, {}, 0, true});
        made.push_back({"service_spread", spread_service(), -1, {}, 0, false});
        add_plugin(made);
        return made;
    }();
    return subjects;
}

std::vector<Subject> plain_subjects()
{
    std::vector<Subject> plain = {{"cpu", pgkm::cpu_backend(), -1, {}, 0, true},
                                  {"spread", spread_cpu(), -1, {}, 0, true},
                                  {"service", service_table(), -1, {}, 0, true}};
    if (plugin().table != nullptr) {
        const std::string name = identifier(plugin().table->name);
        plain.push_back({name, plugin().table, plugin().device, {}, 0, true});
        plain.push_back({name + "_spread", spread_plugin(), plugin().device, {}, 0, true});
    }
    return plain;
}

const std::string &plugin_absence()
{
    return plugin().absence;
}

} // namespace conformance
