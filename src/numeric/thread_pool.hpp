// thread_pool.hpp - the persistent threads of one CPU context.
//
// Tasks are claimed one by one from an atomic counter, so rows that cost more than others
// (bounds that hold for one block and not for the next) balance by themselves. Made for
// Lloyd's loop: many short rounds of the same few workers; a waiting worker spins for some
// microseconds before it sleeps, and one that wakes late finds the round over and does not
// delay it. The threads live in a server process: every signal is blocked in them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "numeric/platform.hpp"

namespace pgkm::cpu {

class ThreadPool {
public:
    using Body = std::function<void(std::int64_t task, int worker)>;

    // threads: workers in all, the calling thread among them; below 1 counts as 1.
    explicit ThreadPool(int threads);
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
    void stop() noexcept;

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable start_; // a round began, or the pool ends
    std::condition_variable done_;  // the last helper left the round
    std::atomic<std::uint64_t> round_{0};
    std::atomic<bool> ending_{false};
    const Body *body_ = nullptr; // of the open round; guarded by mutex_
    int inside_ = 0;             // helpers in the open round; guarded by mutex_
    std::exception_ptr failure_; // guarded by mutex_
    std::int64_t tasks_ = 0;
    // On a line of its own: every worker writes it.
    alignas(64) std::atomic<std::int64_t> next_{0};
};

} // namespace pgkm::cpu
