// thread_pool.hpp - work shared out to threads: a pool that stays, and one loop (parallel_for).
//
// Tasks are claimed one by one from an atomic counter, so rows that cost more than others
// (bounds that hold for one block and not for the next) balance by themselves. Made for
// Lloyd's loop: many short rounds of the same few workers; a waiting worker spins for some
// microseconds before it sleeps, and one that wakes late finds the round over and does not
// delay it. The threads live in a server process: every signal is blocked in them.
// Where the system has no more threads, or the process is granted fewer (processors.hpp), there are fewer workers.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "numeric/platform.hpp"

namespace pgkm {

class ThreadPool {
  public:
    // Refers to a callable body(task, worker), which stays the caller's.
    class Body {
      public:
        template <typename Callable>
        Body(const Callable &callable)
            : callable_(&callable), call_([](const void *own, std::int64_t task, int worker) {
                  (*static_cast<const Callable *>(own))(task, worker);
              })
        {
        }
        void operator()(std::int64_t task, int worker) const { call_(callable_, task, worker); }

      private:
        const void *callable_;
        void (*call_)(const void *own, std::int64_t task, int worker);
    };

    // threads: workers in all, the calling thread among them; below 1 counts as 1. Fewer, where no more start.
    explicit ThreadPool(int threads) noexcept;
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool &operator=(const ThreadPool &) = delete;

    int size() const { return static_cast<int>(threads_.size()) + 1; }

    // Runs body(task, worker) for every task in [0, tasks) and returns when all are done; the
    // caller is worker 0. The first exception of a body stops the claiming of tasks and is
    // rethrown here. Not to be called from inside a body.
    void run(std::int64_t tasks, const Body &body);

  private:
    void serve(int worker);
    void work(const Body &body, int worker) noexcept;

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable start_; // a round began, or the pool ends
    std::condition_variable done_;  // the last helper left the round
    std::atomic<std::uint64_t> round_{0};
    std::atomic<bool> ending_{false};
    const Body *body_ = nullptr; // of the open round; guarded by mutex_
    std::atomic<int> inside_{0}; // helpers in the open round; changed under mutex_
    std::exception_ptr failure_; // guarded by mutex_
    std::int64_t tasks_ = 0;
    // On a line of its own: every worker writes it.
    alignas(64) std::atomic<std::int64_t> next_{0};
};

// Runs body(task, worker) for every task in [0, tasks), in any order, on up to `threads` threads, the caller's among
// them. What a body throws (Error(PGKM_CANCELLED) of a poll, too) stops the claiming of tasks; the first is rethrown
// here, after all threads have ended.
inline void parallel_for(std::int64_t tasks, std::int64_t threads, const ThreadPool::Body &body)
{
    ThreadPool(static_cast<int>(std::min(tasks, threads))).run(tasks, body);
}

// The same on threads of a pool that is there.
inline void parallel_for(ThreadPool &pool, std::int64_t tasks, std::int64_t threads, const ThreadPool::Body &body)
{
    std::atomic<std::int64_t> next{0};
    pool.run(std::min(tasks, threads), [&](std::int64_t, int worker) {
        try {
            for (std::int64_t task; (task = next.fetch_add(1)) < tasks;)
                body(task, worker);
        } catch (...) {
            next.store(tasks);
            throw;
        }
    });
}

} // namespace pgkm
