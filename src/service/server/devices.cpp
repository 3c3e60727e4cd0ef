// devices.cpp - chooses the device that a client's rows go to, and reserves memory there.
#include "service/server/devices.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "backend/spread/spread.hpp"
#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

bool is_meant(const Device &device, std::int32_t ordinal)
{
    return ordinal < 0 || device.ordinal == ordinal;
}

// What a device has for a load: bytes, whether at once, room.
using Offer = std::tuple<std::uint64_t, bool, std::int64_t>;

Offer offer_of(const Device &device, std::uint64_t bytes)
{
    return {std::min(bytes, device.scheduler.largest_reservation()), device.scheduler.can_reserve(bytes),
            device.scheduler.room()};
}

} // namespace

Devices::Devices(const std::vector<PgkmDevice> &found) : found_(found)
{
    std::string why = "no device was found";
    for (const PgkmDevice &device : found) {
        if (device.usable != 0)
            devices_.emplace_back(static_cast<std::int32_t>(devices_.size()), device.ordinal,
                                  device.memory_free - device.memory_free / 16);
        else
            why = device.reason;
    }
    if (devices_.empty())
        throw Error(PGKM_UNAVAILABLE, why);
}

void Devices::set_limits(const PgkmServiceLimits &limits)
{
    for (Device &device : devices_) {
        const std::uint64_t memory =
            limits.device_memory == 0 ? device.free_memory : std::min(limits.device_memory, device.free_memory);
        device.scheduler.set_limits(std::max(1, limits.jobs), memory);
    }
}

std::vector<std::int32_t> Devices::resolve(const std::vector<std::int32_t> &ordinals)
{
    const auto found = [&](std::int32_t ordinal) {
        return *std::find_if(found_.begin(), found_.end(), [=](const auto &one) { return one.ordinal == ordinal; });
    };
    std::vector<std::int32_t> resolved;
    for (const std::int32_t ordinal : ordinals)
        if (ordinal >= 0)
            resolved.push_back(choose(ordinal, 0).ordinal);
    const PgkmDevice first = found(resolved.empty() ? choose(-1, 0).ordinal : resolved[0]);
    for (const Device &device : devices_)
        if (resolved.size() < ordinals.size() && spread::is_same_kind(found(device.ordinal), first) &&
            std::find(resolved.begin(), resolved.end(), device.ordinal) == resolved.end())
            resolved.push_back(device.ordinal);
    return resolved;
}

Device &Devices::choose(std::int32_t ordinal, std::uint64_t bytes)
{
    Device *best = nullptr;
    Offer most;
    for (Device &device : devices_) {
        if (!is_meant(device, ordinal))
            continue;
        const Offer offer = offer_of(device, bytes);
        if (best == nullptr || offer > most) {
            best = &device;
            most = offer;
        }
    }
    if (best != nullptr)
        return *best;
    std::string why = "there is no device " + std::to_string(ordinal);
    for (const PgkmDevice &device : found_)
        if (device.ordinal == ordinal)
            why = device.reason;
    throw Error(PGKM_UNAVAILABLE, "no usable CUDA device: " + why);
}

Devices::Grant Devices::reserve(std::int32_t ordinal, std::uint64_t bytes, const CancelledOn &cancelled)
{
    for (;;) {
        std::unique_lock<std::mutex> lock(choice_);
        Device &device = choose(ordinal, bytes);
        const auto place = device.scheduler.queue_reservation(bytes);
        lock.unlock();
        const auto elsewhere = [&] {
            const Device &best = choose(ordinal, bytes);
            return &best != &device && best.scheduler.can_reserve(bytes) &&
                   best.scheduler.largest_reservation() >= std::min(bytes, device.scheduler.largest_reservation());
        };
        try {
            return {&device,
                    device.scheduler.await_reservation(place, [&] { return cancelled(device) || elsewhere(); })};
        } catch (const Error &) {
            if (cancelled(device))
                throw;
        }
    }
}

std::uint64_t Devices::largest_reservation(std::int32_t ordinal) const
{
    std::uint64_t largest = 0;
    for (const Device &device : devices_)
        if (is_meant(device, ordinal))
            largest = std::max(largest, device.scheduler.largest_reservation());
    return largest;
}

std::uint64_t Devices::fair_share(std::int32_t ordinal) const
{
    std::uint64_t least = UINT64_MAX;
    for (const Device &device : devices_)
        if (is_meant(device, ordinal))
            least = std::min(least, device.scheduler.fair_share());
    return least;
}

} // namespace pgkm::service
