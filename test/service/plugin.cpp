// plugin.cpp - a plugin for tests of the GPU service: the CPU backend under the name "cuda", with
// a pretended device that can be made to fail.
//
// Before every call it looks for a file beside itself, faults.txt, of lines
//
//     FUNCTION KIND [MILLISECONDS] [once]
//
// where FUNCTION is a name of the backend table or "any", and KIND is one of
//
//     out_of_memory, limit, unsupported, device_error   the call fails so
//     hang                      the call lasts until it is cancelled
//     slow                      it takes so many milliseconds longer, unless cancelled
//     deaf                      likewise, but it does not heed a cancel
//     kill                      the process kills itself, as kill -9 would
//     no_device                 (probe) there is none
//
// With "once" the file is removed first; before a pause a file "reached" is made. A device has 1 GB of memory; loads
// that pass it together, or the limit that their context was opened with, fail: the service must prevent that. A file
// "devices" beside the library holds their number, up to 4; without it there is one. A file "unusable" there says why
// none of them can be used.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>

#include "cpu/cpu_backend.hpp"
#include "numeric/error.hpp"

namespace {

using pgkm::set_error;

constexpr std::uint64_t device_bytes = std::uint64_t{1} << 30;

constexpr std::int32_t most_devices = 4;

std::atomic<std::uint64_t> used_bytes[most_devices];

struct Context {
    PgkmContext *cpu;
    PgkmHost host;
    std::uint64_t limit;
    std::atomic<std::uint64_t> *used; // of its device
};

struct Data {
    PgkmData *cpu;
    Context *context;
    std::uint64_t bytes;
};

Context *self(PgkmContext *context)
{
    return reinterpret_cast<Context *>(context);
}
Data *self(PgkmData *data)
{
    return reinterpret_cast<Data *>(data);
}

// Of the functions that may be asked without data whether they are there.
PgkmHost host_of(PgkmData *data)
{
    return data == nullptr ? PgkmHost{} : self(data)->context->host;
}
PgkmData *cpu_of(PgkmData *data)
{
    return data == nullptr ? nullptr : self(data)->cpu;
}

// Of a file beside this library.
std::string path_of(const char *name)
{
    Dl_info info = {};
    dladdr(reinterpret_cast<const void *>(&path_of), &info);
    const std::string own = info.dli_fname == nullptr ? "" : info.dli_fname;
    return own.substr(0, own.rfind('/') + 1) + name;
}

struct Fault {
    std::string kind;
    int milliseconds = 0;
};

Fault fault_of(const char *function)
{
    const std::string path = path_of("faults.txt");
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string of, word;
        Fault fault;
        words >> of >> fault.kind;
        bool once = false;
        while (words >> word) {
            if (word == "once")
                once = true;
            else
                fault.milliseconds = std::atoi(word.c_str());
        }
        // Of several threads that come at once, one removes the file.
        if ((of == function || of == "any") && (!once || unlink(path.c_str()) == 0))
            return fault;
    }
    return {};
}

bool is_cancelled(const PgkmHost &host)
{
    return host.cancelled != nullptr && host.cancelled(host.arg) != 0;
}

// Waits; false when cancelled.
bool pause(const PgkmHost &host, int milliseconds, bool heeds)
{
    const std::ofstream reached(path_of("reached"));
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (milliseconds < 0 || std::chrono::steady_clock::now() < end) {
        if (heeds && is_cancelled(host))
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

// Does what the fault of this function says; PGKM_OK: go on.
PgkmStatus suffer(const char *function, const PgkmHost &host, PgkmError *error)
{
    const Fault fault = fault_of(function);
    set_error(error, PGKM_OK, "");
    if (fault.kind == "out_of_memory")
        return set_error(error, PGKM_OUT_OF_MEMORY, "injected: out of device memory");
    if (fault.kind == "limit")
        return set_error(error, PGKM_LIMIT, "injected: device memory limit");
    if (fault.kind == "unsupported")
        return set_error(error, PGKM_UNSUPPORTED, "injected: unsupported");
    if (fault.kind == "device_error")
        return set_error(error, PGKM_DEVICE_ERROR, "injected: device error");
    if (fault.kind == "no_device")
        return set_error(error, PGKM_UNAVAILABLE, "injected: no device");
    if (fault.kind == "kill")
        kill(getpid(), SIGKILL);
    if ((fault.kind == "hang" && !pause(host, -1, true)) ||
        (fault.kind == "slow" && !pause(host, fault.milliseconds, true)))
        return set_error(error, PGKM_CANCELLED, "cancelled");
    if (fault.kind == "deaf")
        pause(host, fault.milliseconds, false);
    return PGKM_OK;
}

std::int32_t device_count()
{
    std::int32_t count = 1;
    std::ifstream(path_of("devices")) >> count;
    return std::clamp(count, 1, most_devices);
}

PgkmStatus probe(PgkmDevice *devices, std::int32_t capacity, std::int32_t *count, PgkmError *error)
{
    *count = 0;
    const PgkmStatus status = suffer("probe", {}, error);
    if (status != PGKM_OK)
        return status;
    PgkmDevice processor = {};
    pgkm::cpu_backend()->probe(&processor, 1, count, error);
    std::string why;
    std::getline(std::ifstream(path_of("unusable")), why);
    *count = device_count();
    for (std::int32_t i = 0; i < std::min(capacity, *count); ++i) {
        devices[i] = processor;
        std::snprintf(devices[i].name, sizeof devices[i].name, "pretended device");
        devices[i].ordinal = i;
        devices[i].usable = why.empty() ? 1 : 0;
        std::snprintf(devices[i].reason, sizeof devices[i].reason, "%s", why.c_str());
        devices[i].capability_major = 9;
        devices[i].driver_version = 13000;
        devices[i].memory_total = device_bytes;
        devices[i].memory_free = device_bytes - used_bytes[i].load();
    }
    return PGKM_OK;
}

PgkmStatus open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    const PgkmStatus status = suffer("open", options->host, error);
    if (status != PGKM_OK)
        return status;
    const std::int32_t device = std::max(options->device, 0);
    if (device >= device_count())
        return set_error(error, PGKM_INVALID, "there is no such pretended device");
    auto made =
        std::make_unique<Context>(Context{nullptr, options->host, options->device_memory_limit, &used_bytes[device]});
    PgkmOpen on_cpu = *options;
    on_cpu.device = 0;
    if (pgkm::cpu_backend()->open(&on_cpu, &made->cpu, error) == PGKM_OK)
        *context = reinterpret_cast<PgkmContext *>(made.release());
    return error->status;
}

void close(PgkmContext *context)
{
    if (context != nullptr)
        pgkm::cpu_backend()->close(self(context)->cpu);
    delete self(context);
}

PgkmStatus load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    Context &own = *self(context);
    const PgkmStatus status = suffer("load", own.host, error);
    if (status != PGKM_OK)
        return status;
    const std::uint64_t bytes = static_cast<std::uint64_t>(points->n) * static_cast<std::uint64_t>(points->d) *
                                (points->element == PGKM_FLOAT32 ? 4 : 8);
    if (own.limit != 0 && bytes > own.limit)
        return set_error(error, PGKM_LIMIT, "the pretended device cannot stream");
    if (own.used->fetch_add(bytes) + bytes > device_bytes) {
        own.used->fetch_sub(bytes);
        return set_error(error, PGKM_OUT_OF_MEMORY, "the pretended device has no memory left");
    }
    auto made = std::make_unique<Data>(Data{nullptr, &own, bytes});
    if (pgkm::cpu_backend()->load(own.cpu, points, &made->cpu, error) == PGKM_OK)
        *data = reinterpret_cast<PgkmData *>(made.release());
    else
        own.used->fetch_sub(bytes);
    return error->status;
}

void unload(PgkmData *data)
{
    if (data == nullptr)
        return;
    pgkm::cpu_backend()->unload(self(data)->cpu);
    self(data)->context->used->fetch_sub(self(data)->bytes);
    delete self(data);
}

template <std::size_t N>
struct Name {
    constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }
    char text[N];
};

// The CPU's function of that name, after the fault that it shall have.
template <Name name, auto function>
struct Faulty;

template <Name name, typename... Arguments, PgkmStatus (*PgkmBackend::*function)(PgkmData *, Arguments...)>
struct Faulty<name, function> {
    static PgkmStatus run(PgkmData *data, Arguments... arguments)
    {
        PgkmError *const error = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
        const PgkmStatus status = suffer(name.text, host_of(data), error);
        return status != PGKM_OK ? status : (pgkm::cpu_backend()->*function)(cpu_of(data), arguments...);
    }
};

} // namespace

extern "C" __attribute__((visibility("default"))) const PgkmBackend *pgkm_backend_entry(std::uint32_t abi)
{
    static const PgkmBackend table = {PGKM_BACKEND_ABI,
                                      sizeof(PgkmBackend),
                                      "cuda",
                                      probe,
                                      pgkm::cpu_backend()->strategies,
                                      open,
                                      close,
                                      load,
                                      unload,
                                      Faulty<"summarise", &PgkmBackend::summarise>::run,
                                      Faulty<"seed", &PgkmBackend::seed>::run,
                                      Faulty<"fit", &PgkmBackend::fit>::run,
                                      Faulty<"assign", &PgkmBackend::assign>::run,
                                      Faulty<"moments", &PgkmBackend::moments>::run,
                                      Faulty<"em_step", &PgkmBackend::em_step>::run,
                                      Faulty<"reduce", &PgkmBackend::reduce>::run,
                                      nullptr};
    return abi == PGKM_BACKEND_ABI ? &table : nullptr;
}
