// contexts.cpp - opens a context for each device, and runs calls of theirs side by side.
#include "backend/spread/contexts.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <thread>

#include "backend/host.hpp"
#include "numeric/error.hpp"
#include "numeric/signals.hpp"

namespace pgkm::spread {
namespace {

// What is free on each of the devices, shared by the contexts that are to be on it: the least. 0: not known.
std::uint64_t free_memory(const PgkmBackend &inner, const PgkmOpen &options)
{
    std::array<PgkmDevice, PGKM_MOST_DEVICES> found = {};
    std::int32_t count = 0;
    PgkmError error = {};
    if (inner.probe(found.data(), PGKM_MOST_DEVICES, &count, &error) != PGKM_OK)
        return 0;
    const std::int32_t *const first = options.devices, *const last = first + options.n_devices;
    std::uint64_t least = UINT64_MAX;
    for (const std::int32_t *device = first; device != last; ++device) {
        const auto at = std::find_if(found.begin(), found.end(),
                                     [&](const PgkmDevice &one) { return one.usable != 0 && one.ordinal == *device; });
        const auto contexts = static_cast<std::uint64_t>(std::count(first, last, *device));
        least = std::min(least, at == found.end() ? 0 : at->memory_free / contexts);
    }
    return least;
}

} // namespace

Contexts::Contexts(const PgkmBackend &inner, const PgkmOpen &options)
    : inner_(inner), host_(options.host), device_memory_(options.device_memory_limit),
      opened_(static_cast<std::size_t>(options.n_devices))
{
    const auto count = static_cast<std::int32_t>(opened_.size());
    if (count == 0 || *std::min_element(options.devices, options.devices + count) < 0)
        throw Error(PGKM_INVALID, "several devices are opened by their numbers");
    PgkmOpen open = options;
    open.devices = nullptr;
    open.n_devices = 0;
    const auto part = [&](std::int32_t threads) { return threads == 0 ? 0 : std::max(1, threads / count); };
    open.threads = part(options.threads);
    open.most_threads = part(options.most_threads);
    open.memory_limit = options.memory_limit / static_cast<std::uint64_t>(count);
    for (std::size_t i = 0; i < opened_.size(); ++i) {
        Opened &opened = opened_[i];
        opened.owner = this;
        open.device = options.devices[i];
        devices_ |= std::uint64_t{1} << (open.device % 64);
        open.host = {cancelled, report, &opened};
        PgkmError error = {};
        if (inner.open(&open, &opened.context, &error) != PGKM_OK) {
            while (i-- > 0)
                inner.close(opened_[i].context);
            throw Error(error);
        }
    }
    if (device_memory_ == 0)
        device_memory_ = free_memory(inner, options);
}

Contexts::~Contexts()
{
    for (const Opened &opened : opened_)
        inner_.close(opened.context);
}

int Contexts::cancelled(void *opened)
{
    const Contexts &self = *static_cast<const Opened *>(opened)->owner;
    return self.failed_.load(std::memory_order_relaxed) || is_cancelled(self.host_) ? 1 : 0;
}

// What the other contexts have moved is added to what the reporting one has.
void Contexts::report(void *arg, const PgkmProgress *progress)
{
    Opened &own = *static_cast<Opened *>(arg);
    const Contexts &self = *own.owner;
    own.bytes_moved.store(progress->bytes_moved, std::memory_order_relaxed);
    if (self.host_.progress == nullptr || self.reporter_.load() != &own)
        return;
    PgkmProgress all = *progress;
    all.devices = self.devices_;
    for (const Opened &other : self.opened_)
        all.bytes_moved += &other == &own ? 0 : other.bytes_moved.load(std::memory_order_relaxed);
    self.host_.progress(self.host_.arg, &all);
}

void Contexts::run(const std::vector<std::size_t> &which, const Body &body)
{
    if (which.empty())
        return;
    failed_.store(false);
    std::vector<PgkmError> errors(which.size(), PgkmError{});
    const auto work = [&](std::size_t i) noexcept {
        PgkmStatus status = PGKM_OK;
        PgkmError thrown = {};
        if (guarded(&thrown, [&] { status = body(which[i], &errors[i]); }) != PGKM_OK)
            errors[i] = thrown;
        if (status != PGKM_OK || thrown.status != PGKM_OK)
            failed_.store(true);
    };
    std::vector<std::thread> threads;
    std::exception_ptr no_thread;
    reporter_.store(&opened_[which[0]]);
    try {
        const SignalsBlocked guard;
        for (std::size_t i = 1; i < which.size(); ++i)
            threads.emplace_back(work, i);
    } catch (...) {
        no_thread = std::current_exception();
        failed_.store(true);
    }
    if (no_thread == nullptr)
        work(0);
    for (std::thread &thread : threads)
        thread.join();
    reporter_.store(nullptr);
    failed_.store(false);
    if (no_thread != nullptr)
        std::rethrow_exception(no_thread);
    // Those that were cancelled because of it are not what failed.
    const auto is = [&](auto &&of) { return std::find_if(errors.begin(), errors.end(), of); };
    auto first = is([](const PgkmError &error) { return error.status != PGKM_OK && error.status != PGKM_CANCELLED; });
    if (first == errors.end())
        first = is([](const PgkmError &error) { return error.status != PGKM_OK; });
    if (first != errors.end())
        throw Error(*first);
}

} // namespace pgkm::spread
