#include "cpu/cpu_backend.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cpu/assign.hpp"
#include "cpu/context.hpp"
#include "cpu/em_step.hpp"
#include "cpu/lloyd.hpp"
#include "cpu/moments.hpp"
#include "cpu/seed.hpp"
#include "cpu/summarise.hpp"
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

PgkmStatus summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
                     PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] { cpu::summarise(*self(data), problems, n_problems, want_moments != 0, summaries); });
}

PgkmStatus seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                PgkmError *error)
{
    return guarded(error, [&] { cpu::seed(*self(data), problems, n_problems, *params); });
}

PgkmStatus fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
               PgkmError *error)
{
    return guarded(error, [&] { cpu::fit(*self(data), problems, n_problems, *params); });
}

PgkmStatus assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments,
                  PgkmError *error)
{
    return guarded(error, [&] { cpu::assign(*self(data), problems, n_problems, assignments); });
}

PgkmStatus moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                   PgkmError *error)
{
    return guarded(error, [&] {
        if (n_problems > 0)
            cpu::moments(*self(data), problems, n_problems, moments);
    });
}

PgkmStatus em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
                   PgkmMixtureSums *sums, PgkmError *error)
{
    return guarded(error, [&] {
        if (n_problems > 0)
            cpu::em_step(*self(data), problems, n_problems, mixtures, sums);
    });
}

} // namespace

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
                                      summarise,
                                      seed,
                                      fit,
                                      assign,
                                      moments,
                                      em_step};
    return &table;
}

} // namespace pgkm
