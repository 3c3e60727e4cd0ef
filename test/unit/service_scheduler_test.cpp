// Who gets turns and memory of a device, and when.
#include <atomic>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "service/server/scheduler.hpp"
#include "service_fixture.hpp"

namespace pgkm::service {
namespace {

bool never()
{
    return false;
}

constexpr milliseconds soon{5000}, shortly{30};

TEST(Scheduler, OneTurnIsKeptForSmallCalls)
{
    Scheduler scheduler(3, 1000);
    scheduler.begin(false, never);
    scheduler.begin(false, never);
    Waiter large([&] { scheduler.begin(false, never); });
    EXPECT_FALSE(large.done_within(shortly));
    Waiter small([&] { scheduler.begin(true, never); });
    EXPECT_TRUE(small.done_within(soon)) << "a small call waits behind a large one";
    scheduler.end(false);
    EXPECT_TRUE(large.done_within(soon));
    EXPECT_EQ(scheduler.counts().running, 3);
}

TEST(Scheduler, TurnsComeInOrderOfArrival)
{
    Scheduler scheduler(1, 1000);
    scheduler.begin(true, never);
    std::atomic<int> order{0}, first{-1}, second{-1};
    Waiter one([&] {
        scheduler.begin(false, never);
        first = order++;
        scheduler.end(false);
    });
    while (scheduler.counts().waiting < 1)
        std::this_thread::yield();
    Waiter two([&] {
        scheduler.begin(true, never);
        second = order++;
        scheduler.end(true);
    });
    while (scheduler.counts().waiting < 2)
        std::this_thread::yield();
    scheduler.end(true);
    EXPECT_TRUE(two.done_within(soon));
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, 1);
}

TEST(Scheduler, WaitingEndsWithACancel)
{
    Scheduler scheduler(1, 1000);
    scheduler.begin(true, never);
    std::atomic<bool> cancelled{false};
    Waiter waiter([&] { EXPECT_THROW(scheduler.begin(true, [&] { return cancelled.load(); }), Error); });
    EXPECT_FALSE(waiter.done_within(shortly));
    cancelled = true;
    EXPECT_TRUE(waiter.done_within(soon));
    EXPECT_EQ(scheduler.counts().waiting, 0);
}

TEST(Scheduler, MemoryIsNeverLeasedTwice)
{
    Scheduler scheduler(4, 8000);
    const Reservation first = scheduler.reserve(6000, never);
    Waiter second([&] { scheduler.give_back(scheduler.reserve(6000, never)); });
    EXPECT_FALSE(second.done_within(shortly));
    const Reservation small = scheduler.reserve(200, never); // the eighth that is kept
    EXPECT_EQ(scheduler.counts().reserved, 6200u);
    scheduler.give_back(first);
    EXPECT_TRUE(second.done_within(soon));
    scheduler.give_back(small);
    EXPECT_EQ(scheduler.counts().reserved, 0u);
}

TEST(Scheduler, ALeaseIsAtMostWhatALargeLoadMayHave)
{
    Scheduler scheduler(4, 8000);
    EXPECT_EQ(scheduler.reserve(1'000'000, never).bytes, 7000u);
}

TEST(Scheduler, AFairShareCountsAsSmall)
{
    Scheduler scheduler(1, 8000);
    const Reservation large = scheduler.reserve(7000, never);
    EXPECT_FALSE(large.small);
    EXPECT_EQ(scheduler.fair_share(), 218u);
    EXPECT_TRUE(scheduler.reserve(scheduler.fair_share(), never).small);
}

TEST(Scheduler, SmallLeasesDoNotStarveALargeOne)
{
    Scheduler scheduler(4, 8000);
    std::vector<Reservation> small;
    for (int i = 0; i < 10; ++i)
        small.push_back(scheduler.reserve(200, never));
    Waiter large([&] { scheduler.give_back(scheduler.reserve(7000, never)); });
    while (scheduler.counts().waiting < 1)
        std::this_thread::yield();
    // More small ones have to wait now, for 2000 of the 1000 bytes kept for them are out.
    Waiter late([&] { scheduler.give_back(scheduler.reserve(200, never)); });
    EXPECT_FALSE(late.done_within(shortly));
    for (std::size_t i = 0; i < 5; ++i)
        scheduler.give_back(small[i]);
    EXPECT_TRUE(large.done_within(soon));
    EXPECT_TRUE(late.done_within(soon));
}

TEST(Scheduler, ALoweredLimitDoesNotStopTheLastJob)
{
    Scheduler scheduler(4, 8000);
    const Reservation before = scheduler.reserve(7000, never);
    scheduler.set_limits(1, 100);
    scheduler.give_back(before);
    EXPECT_EQ(scheduler.reserve(5000, never).bytes, 88u);
}

} // namespace
} // namespace pgkm::service
