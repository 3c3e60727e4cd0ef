// Work shared out to threads: every task once, exceptions handed on, signals left alone.
#include "numeric/thread_pool.hpp"

#include <csignal>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "numeric/processors.hpp"

namespace pgkm {
namespace {

class Pool : public testing::TestWithParam<int> {
  protected:
    ThreadPool pool{GetParam()};
};

TEST_P(Pool, RunsEveryTaskOnce)
{
    for (const std::int64_t tasks : {0, 1, 2, 3, 100, 10'000}) {
        std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
        pool.run(tasks, [&](std::int64_t task, int worker) {
            ++runs[static_cast<std::size_t>(task)];
            EXPECT_GE(worker, 0);
            EXPECT_LT(worker, pool.size());
        });
        for (const std::atomic<int> &count : runs)
            ASSERT_EQ(count, 1);
    }
}

TEST_P(Pool, WorkersDoNotShareANumber)
{
    std::vector<std::atomic<int>> inside(static_cast<std::size_t>(pool.size()));
    std::atomic<int> collisions{0};
    pool.run(20'000, [&](std::int64_t, int worker) {
        collisions += inside[static_cast<std::size_t>(worker)]++ != 0;
        --inside[static_cast<std::size_t>(worker)];
    });
    EXPECT_EQ(collisions, 0);
}

TEST_P(Pool, HandsExceptionsOnAndGoesOn)
{
    for (int round = 0; round < 50; ++round) {
        EXPECT_THROW(pool.run(100,
                              [&](std::int64_t task, int) {
                                  if (task == round)
                                      throw std::runtime_error("as wanted");
                              }),
                     std::runtime_error);
        std::atomic<std::int64_t> sum{0};
        pool.run(100, [&](std::int64_t task, int) { sum += task; });
        EXPECT_EQ(sum, 4950);
    }
}

TEST_P(Pool, ManyShortRounds)
{
    std::atomic<std::int64_t> count{0};
    for (int round = 0; round < 5'000; ++round)
        pool.run(round % 7, [&](std::int64_t, int) { ++count; });
    std::int64_t expected = 0;
    for (int round = 0; round < 5'000; ++round)
        expected += round % 7;
    EXPECT_EQ(count, expected);
}

// The server's signals must reach the server's own thread alone.
TEST_P(Pool, ThreadsBlockSignals)
{
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> unblocked{0};
    pool.run(1'000, [&](std::int64_t, int) {
        if (std::this_thread::get_id() == caller)
            return;
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGQUIT, SIGHUP})
            unblocked += sigismember(&mask, signal) != 1;
    });
    EXPECT_EQ(unblocked, 0);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGINT), 0) << "the caller's own mask was changed";
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, testing::Values(1, 2, 3, 8));

TEST(PoolSize, IsAtLeastOne)
{
    EXPECT_EQ(ThreadPool(0).size(), 1);
    EXPECT_EQ(ThreadPool(-3).size(), 1);
    EXPECT_EQ(ThreadPool(4).size(), 4);
}

TEST(ParallelFor, RunsEveryTaskOnce)
{
    for (const int threads : {0, 1, 5}) {
        std::vector<std::atomic<int>> runs(1000);
        parallel_for(1000, threads, [&](std::int64_t task, int) { ++runs[task]; });
        for (const std::atomic<int> &count : runs)
            ASSERT_EQ(count, 1);
    }
}

TEST(ParallelFor, StopsAndThrowsTheFirstException)
{
    std::atomic<int> thrown{0};
    EXPECT_THROW(parallel_for(1000, 4,
                              [&](std::int64_t task, int) {
                                  if (task < 10)
                                      return;
                                  ++thrown;
                                  throw std::runtime_error("as wanted");
                              }),
                 std::runtime_error);
    EXPECT_GE(thrown, 1);
    EXPECT_LE(thrown, 4) << "one for each thread at most";
}

// In a process of its own, whose user may start no thread.
TEST(ParallelFor, GoesOnWithFewerThreadsWhereNoMoreStart)
{
    const auto sum_without_threads = [] {
        constexpr rlimit none = {0, 0};
        if (geteuid() == 0 && setuid(65533) != 0)
            return 2;
        setrlimit(RLIMIT_NPROC, &none);
        std::atomic<std::int64_t> sum{0};
        parallel_for(100, 8, [&](std::int64_t task, int worker) { sum += task + 10000 * worker; });
        return sum == 4950 ? 0 : 1;
    };
    EXPECT_EXIT(_exit(sum_without_threads()), testing::ExitedWithCode(0), "");
}

// Whatever a caller asks for.
TEST(Pool, HasNoMoreWorkersThanTheProcessIsGranted)
{
    const std::int32_t before = thread_limit.exchange(2);
    EXPECT_EQ(ThreadPool(64).size(), 2);
    thread_limit.store(0);
    EXPECT_EQ(ThreadPool(4096).size(), usable_processors());
    thread_limit.store(before);
    EXPECT_EQ(ThreadPool(3).size(), 3);
}

} // namespace
} // namespace pgkm
