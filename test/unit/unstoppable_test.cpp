// Work that cannot be stopped: its thread, those who wait for it, and a process that exits meanwhile.
#include "engine/job/unstoppable.hpp"

#include <csignal>
#include <cstdlib>

#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "numeric/error.hpp"

namespace pgkm {
namespace {

const Poll no_poll = [] {};

void cancel()
{
    throw Error(PGKM_CANCELLED, "cancelled");
}

// Work that goes on until it is let go; until then a thread that waited for it would wait for ever.
struct Held {
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    std::shared_ptr<std::atomic<int>> runs = std::make_shared<std::atomic<int>>(0);

    void leave(std::uint64_t bytes)
    {
        const auto work = [released = released, runs = runs](const Poll &) {
            ++*runs;
            released.wait();
        };
        const auto once_it_runs = [this] {
            if (*runs != 0)
                cancel();
        };
        EXPECT_THROW(run_unstoppable(bytes, work, once_it_runs), Error);
    }
};

TEST(Unstoppable, ReturnsAtItsEnd)
{
    int result = 0;
    run_unstoppable(
        1,
        [&](const Poll &poll) {
            poll();
            result = 7;
        },
        no_poll);
    EXPECT_EQ(result, 7);
    EXPECT_EQ(pgkm_bytes_left_behind(), 0U);
}

TEST(Unstoppable, PassesOnWhatIsThrown)
{
    EXPECT_THROW(run_unstoppable(
                     1, [](const Poll &) { throw std::bad_alloc(); }, no_poll),
                 std::bad_alloc);
    EXPECT_EQ(pgkm_bytes_left_behind(), 0U);
}

TEST(Unstoppable, BlocksSignals)
{
    sigset_t mask;
    run_unstoppable(
        1, [&](const Poll &) { pthread_sigmask(SIG_SETMASK, nullptr, &mask); }, no_poll);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGHUP})
        EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
}

// What is left behind counts, and the next waits for it: a session cannot pile such threads up.
TEST(Unstoppable, OneAtATime)
{
    Held held;
    held.leave(1234);
    EXPECT_EQ(pgkm_bytes_left_behind(), 1234U);
    const auto counted = [runs = held.runs](const Poll &) { ++*runs; };
    EXPECT_THROW(run_unstoppable(1, counted, cancel), Error); // waiting can be cancelled
    int polls = 0;
    run_unstoppable(1, counted, [&] {
        EXPECT_TRUE(polls >= 3 || *held.runs == 1);
        if (++polls == 3)
            held.release.set_value();
    });
    EXPECT_EQ(*held.runs, 2);
    EXPECT_EQ(pgkm_bytes_left_behind(), 0U);
}

TEST(Unstoppable, FreesWhatIsLeftBehind)
{
    const auto owned = std::make_shared<int>(1);
    const auto works = std::make_shared<std::atomic<bool>>(false);
    const auto ends_when_left = [owned, works](const Poll &poll) {
        for (;; std::this_thread::yield()) {
            *works = true;
            poll();
        }
    };
    EXPECT_THROW(run_unstoppable(1, ends_when_left,
                                 [&] {
                                     if (*works)
                                         cancel();
                                 }),
                 Error);
    run_unstoppable(
        1, [](const Poll &) {}, no_poll);
    EXPECT_EQ(pgkm_bytes_left_behind(), 0U);
}

// What exit() would destroy while the thread works with it.
void exit_while_left_behind()
{
    std::atexit([] { _exit(99); });
    Held held;
    held.leave(1);
    std::exit(3);
}

void exit_after_it_ended()
{
    std::atexit([] { _exit(99); });
    Held held;
    held.leave(1);
    held.release.set_value();
    run_unstoppable(
        1, [](const Poll &) {}, no_poll);
    std::exit(3);
}

TEST(UnstoppableDeathTest, ExitDestroysNothingMeanwhile)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(exit_while_left_behind(), testing::ExitedWithCode(3), "");
    EXPECT_EXIT(exit_after_it_ended(), testing::ExitedWithCode(99), "");
}

} // namespace
} // namespace pgkm
