// cpu_backend.cpp - the CPU backend's function table.
#include "cpu/cpu_backend.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cpu/operations.hpp"
#include "cpu/context.hpp"
#include "cpu/entries/entries.hpp"
#include "numeric/processors.hpp"

namespace pgkm {
namespace {

using cpu::self;

std::uint64_t memory_pages(int name)
{
    const long pages = sysconf(name), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 0;
}

PgkmStatus probe(PgkmDevice *devices, std::int32_t capacity, std::int32_t *count, PgkmError *error)
{
    return guarded(error, [&] {
        *count = 1;
        if (capacity < 1)
            return;
        PgkmDevice &device = devices[0];
        device = {};
        device.usable = 1;
        device.units = usable_processors();
        device.memory_total = memory_pages(_SC_PHYS_PAGES);
        device.memory_free = memory_pages(_SC_AVPHYS_PAGES);
        std::snprintf(device.name, sizeof device.name, "%s", name_of(cpu::best_instruction_set()));
    });
}

PgkmStatus open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return guarded(error, [&] {
        if (options->struct_size != sizeof(PgkmOpen))
            throw Error(PGKM_INVALID, "the CPU backend was opened with options of another version");
        if (options->device > 0)
            throw Error(PGKM_INVALID, "the CPU backend has one device, 0");
        if (options->threads < 0)
            throw Error(PGKM_INVALID, "the number of CPU threads must not be negative");
        const int threads = options->threads == 0 ? usable_processors() : options->threads;
        auto opened = std::make_unique<cpu::Context>(*options, threads);
        *context = reinterpret_cast<PgkmContext *>(opened.release());
    });
}

void close(PgkmContext *context)
{
    delete self(context);
}

PgkmStatus load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] { *data = reinterpret_cast<PgkmData *>(new cpu::Data{*self(context), *points}); });
}

void unload(PgkmData *data)
{
    delete self(data);
}

// call(data, arguments...) as a function of the table. Without data nothing is done: reduce() is asked so whether it is
// there. A call that reads the rows may want the memory of entries.
template <auto call, bool on_entries = false>
struct Guarded;

template <typename... Arguments, void (*call)(cpu::Data &, Arguments...), bool on_entries>
struct Guarded<call, on_entries> {
    static PgkmStatus run(PgkmData *data, Arguments... arguments, PgkmError *error)
    {
        return guarded(error, [&] {
            if (data == nullptr)
                return;
            if (!on_entries)
                self(data)->entries.reset();
            call(*self(data), arguments...);
        });
    }
};

} // namespace

ThreadPool &cpu::pool_of(PgkmContext *context)
{
    return self(context)->pool;
}

cpu::HeldMemory::HeldMemory(PgkmContext *context, std::uint64_t bytes) : context_(context), bytes_(bytes)
{
    try {
        self(context_)->budget.take(bytes_);
    } catch (const Error &refused) {
        throw Error(refused.status(), refused.what(), limit_of_job);
    }
}

cpu::HeldMemory::~HeldMemory()
{
    self(context_)->budget.give_back(bytes_);
}

const PgkmBackend *cpu_backend()
{
    static const PgkmBackend table = {PGKM_BACKEND_ABI,
                                      sizeof(PgkmBackend),
                                      "cpu",
                                      probe,
                                      cpu::strategy_names,
                                      open,
                                      close,
                                      load,
                                      unload,
                                      Guarded<cpu::summarise>::run,
                                      Guarded<cpu::seed_entries, true>::run,
                                      Guarded<cpu::fit_entries, true>::run,
                                      Guarded<cpu::assign_entries, true>::run,
                                      Guarded<cpu::moments>::run,
                                      Guarded<cpu::em_step>::run,
                                      Guarded<cpu::reduce>::run,
                                      Guarded<cpu::fit_sizes>::run};
    return &table;
}

} // namespace pgkm
