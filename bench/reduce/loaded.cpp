// loaded.cpp - opens a backend, and loads rows into it.
#include "loaded.hpp"

#include <cstdio>
#include <stdexcept>

#include "cpu/cpu_backend.hpp"
#include "service/plugin.hpp"

namespace bench {

Options options;

const PgkmBackend *find_backend(const std::string &name, const char *plugin)
{
    if (name == "cpu")
        return pgkm::cpu_backend();
    std::string why = name == "cuda" ? "no plugin is named" : "there is no backend " + name;
    const PgkmBackend *const backend = name == "cuda" && plugin != nullptr ? pgkm::cuda_backend(plugin, &why) : nullptr;
    if (backend == nullptr)
        std::fprintf(stderr, "%s\n", why.c_str());
    return backend;
}

bool on_cpu()
{
    return std::string(options.backend->name) == "cpu";
}

void check(PgkmStatus status, const PgkmError &error)
{
    if (status != PGKM_OK)
        throw std::runtime_error(error.text);
}

Loaded::Loaded(const PgkmPoints &points, const PgkmTuning &tuning, std::uint64_t device_limit) : points_(points)
{
    PgkmOpen open = {};
    open.struct_size = sizeof open;
    open.device = -1;
    open.threads = options.threads;
    open.device_memory_limit = device_limit;
    open.tuning = tuning;
    open.host.arg = this;
    open.host.cancelled = [](void *) { return 0; };
    open.host.progress = [](void *self, const PgkmProgress *progress) {
        static_cast<Loaded *>(self)->chosen = progress->chosen;
    };
    check(options.backend->open(&open, &context_, &error), error);
    const PgkmStatus status = options.backend->load(context_, &points_, &data, &error);
    if (status != PGKM_OK)
        options.backend->close(context_);
    check(status, error);
    all.n_rows = points.n;
}

Loaded::Loaded(const std::vector<float> &values, std::int32_t d, const char *assignment, const char *layout)
    : Loaded({values.data(), PGKM_FLOAT32, static_cast<std::int64_t>(values.size()) / d, d, nullptr},
             {assignment, nullptr, nullptr, nullptr, layout, nullptr})
{
}

Loaded::~Loaded()
{
    options.backend->unload(data);
    options.backend->close(context_);
}

void Loaded::reload()
{
    options.backend->unload(data);
    data = nullptr;
    check(options.backend->load(context_, &points_, &data, &error), error);
}

std::vector<double> Loaded::reduce(const Program &program)
{
    conformance::Reduced out(program);
    const PgkmReduction view = program.view();
    check(options.backend->reduce(data, &all, 1, &view, &out.view, &error), error);
    return out.values;
}

std::string Loaded::layout() const
{
    return chosen.reduction_layout == nullptr ? "" : chosen.reduction_layout;
}

} // namespace bench
