// Several devices behind one service: each has its own turns and memory, and jobs go where there is room.
#include <gtest/gtest.h>

#include "service/server/devices.hpp"
#include "service_fixture.hpp"

namespace pgkm::service {
namespace {

PgkmDevice found(std::int32_t ordinal, std::uint64_t memory, bool usable = true)
{
    PgkmDevice device = {};
    device.ordinal = ordinal;
    device.usable = usable ? 1 : 0;
    device.memory_free = memory;
    std::snprintf(device.reason, sizeof device.reason, "%s", usable ? "" : "too old");
    return device;
}

bool never(Device &)
{
    return false;
}

PgkmDevice named(std::int32_t ordinal, const char *name)
{
    PgkmDevice device = found(ordinal, 16000);
    std::snprintf(device.name, sizeof device.name, "%s", name);
    return device;
}

// Each 16000 bytes: 15000 are lent, 13125 of them to large loads.
std::vector<PgkmDevice> two()
{
    return {found(0, 16000), found(1, 16000)};
}

TEST(Devices, UnusableOnesAreLeftOut)
{
    Devices devices({found(0, 16000, false), found(2, 16000)});
    ASSERT_EQ(devices.all().size(), 1u);
    EXPECT_EQ(devices.choose(-1, 10).ordinal, 2);
    EXPECT_EQ(devices.choose(2, 10).ordinal, 2);
    EXPECT_THROW(devices.choose(1, 10), Error);
    try {
        devices.choose(0, 10);
        ADD_FAILURE() << "an unusable device was chosen";
    } catch (const Error &error) {
        EXPECT_EQ(error.status(), PGKM_UNAVAILABLE);
        EXPECT_STREQ(error.what(), "no usable CUDA device: too old");
    }
    EXPECT_THROW(Devices({found(0, 16000, false)}), Error);
    EXPECT_THROW(Devices({}), Error);
}

// A list of devices: ordinals stay, also twice; the service's choice is of one kind.
TEST(Devices, AListIsResolved)
{
    Devices devices({named(0, "large"), named(1, "small"), named(2, "large"), found(3, 16000, false)});
    using List = std::vector<std::int32_t>;
    EXPECT_EQ(devices.resolve({0, 0, 2}), (List{0, 0, 2}));
    EXPECT_EQ(devices.resolve({-1, -1, -1, -1}), (List{0, 2}));
    EXPECT_EQ(devices.resolve({-1, -1}), (List{0, 2}));
    EXPECT_THROW(devices.resolve({0, 3}), Error);
    EXPECT_THROW(devices.resolve({7}), Error);
}

TEST(Devices, EachHasItsOwnMemory)
{
    Devices devices(two());
    devices.set_limits({4, 0});
    const Devices::Grant first = devices.reserve(-1, 12000, never), second = devices.reserve(-1, 12000, never);
    EXPECT_EQ(first.device->ordinal, 0);
    EXPECT_EQ(second.device->ordinal, 1) << "where there is room";
    EXPECT_EQ(first.reservation.bytes + second.reservation.bytes, 24000u);
    first.device->scheduler.give_back(first.reservation);
    EXPECT_EQ(devices.reserve(-1, 12000, never).device->ordinal, 0);
}

TEST(Devices, ADeviceAskedForIsWaitedFor)
{
    Devices devices(two());
    const Devices::Grant first = devices.reserve(0, 12000, never);
    std::atomic<std::int32_t> got{-1};
    Waiter second([&] { got = devices.reserve(0, 12000, never).device->ordinal; });
    EXPECT_FALSE(second.done_within(milliseconds(50))) << "the other one has room, but was not asked for";
    first.device->scheduler.give_back(first.reservation);
    EXPECT_TRUE(second.done_within(milliseconds(5000)));
    EXPECT_EQ(got, 0);
}

TEST(Devices, WhoWaitsGoesWhereRoomComesFirst)
{
    Devices devices(two());
    const Devices::Grant first = devices.reserve(-1, 12000, never), second = devices.reserve(-1, 12000, never);
    EXPECT_NE(first.device, second.device);
    std::atomic<std::int32_t> got{-1};
    Waiter third([&] { got = devices.reserve(-1, 12000, never).device->ordinal; }); // waits for device 0
    EXPECT_FALSE(third.done_within(milliseconds(50)));
    second.device->scheduler.give_back(second.reservation);
    EXPECT_TRUE(third.done_within(milliseconds(5000)));
    EXPECT_EQ(got, 1);
}

TEST(Devices, WaitersSpread)
{
    Devices devices(two());
    const Devices::Grant first = devices.reserve(-1, 12000, never), second = devices.reserve(-1, 12000, never);
    Waiter third([&] { devices.reserve(-1, 12000, never); }), fourth([&] { devices.reserve(-1, 12000, never); });
    const auto waiting = [&](const Device &device) { return device.scheduler.counts().waiting; };
    for (int i = 0; i < 1000 && waiting(devices.all().front()) + waiting(devices.all().back()) < 2; ++i)
        std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(waiting(devices.all().front()), 1);
    EXPECT_EQ(waiting(devices.all().back()), 1);
    first.device->scheduler.give_back(first.reservation);
    second.device->scheduler.give_back(second.reservation);
}

// A load too large for the small device does not go there, whatever room it has.
TEST(Devices, TheLargestLoadsGoToTheLargestDevice)
{
    Devices devices({found(0, 1600), found(1, 16000)});
    EXPECT_EQ(devices.largest_reservation(-1), 13125u);
    EXPECT_EQ(devices.largest_reservation(0), 1313u);
    const Devices::Grant first = devices.reserve(-1, 10000, never);
    EXPECT_EQ(first.device->ordinal, 1);
    Waiter second([&] { EXPECT_EQ(devices.reserve(-1, 10000, never).device->ordinal, 1); });
    EXPECT_FALSE(second.done_within(milliseconds(50)));
    EXPECT_EQ(devices.reserve(-1, 1000, never).device->ordinal, 0) << "at once";
    first.device->scheduler.give_back(first.reservation);
    EXPECT_TRUE(second.done_within(milliseconds(5000)));
}

TEST(Devices, WaitingEndsWithACancel)
{
    Devices devices(two());
    const Devices::Grant first = devices.reserve(0, 12000, never);
    std::atomic<bool> cancelled{false};
    Waiter waiter([&] { EXPECT_THROW(devices.reserve(0, 12000, [&](Device &) { return cancelled.load(); }), Error); });
    EXPECT_FALSE(waiter.done_within(milliseconds(30)));
    cancelled = true;
    EXPECT_TRUE(waiter.done_within(milliseconds(5000)));
    EXPECT_EQ(first.device->scheduler.counts().waiting, 0);
    first.device->scheduler.give_back(first.reservation);
}

TEST(Devices, ALimitHoldsForEach)
{
    Devices devices(two());
    devices.set_limits({1, 8000});
    EXPECT_EQ(devices.largest_reservation(-1), 7000u);
    for (const Device &device : devices.all())
        EXPECT_EQ(device.scheduler.counts().memory, 8000u);
}

} // namespace
} // namespace pgkm::service
