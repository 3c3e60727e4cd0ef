// thread_pool.cpp - the rounds of a pool of threads.
#include "numeric/thread_pool.hpp"

#include <utility>

#include "numeric/processors.hpp"
#include "numeric/signals.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace pgkm {
namespace {

// Some tens of microseconds: longer than the serial part of an iteration on small data,
// far shorter than anything a server would notice.
constexpr int spins_before_sleep = 2000;

void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}
} // namespace

ThreadPool::ThreadPool(int threads) noexcept
{
    if (threads <= 1) // one is made for each small problem: no system call
        return;
    threads = std::min<int>(threads, granted_threads());
    const SignalsBlocked blocked;
    try {
        for (int worker = 1; worker < threads; ++worker)
            threads_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::exception &) {
        // No thread or no memory for it: those that there are do the work.
    }
}

ThreadPool::~ThreadPool()
{
    {
        const std::lock_guard lock(mutex_);
        ending_.store(true);
    }
    start_.notify_all();
    for (std::thread &thread : threads_)
        thread.join();
}

void ThreadPool::run(std::int64_t tasks, const Body &body)
{
    if (tasks <= 1 || threads_.empty()) {
        for (std::int64_t task = 0; task < tasks; ++task)
            body(task, 0);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        body_ = &body;
        tasks_ = tasks;
        next_.store(0);
        failure_ = nullptr;
        round_.fetch_add(1);
    }
    if (tasks > static_cast<std::int64_t>(threads_.size()))
        start_.notify_all();
    else
        for (std::int64_t i = 1; i < tasks; ++i)
            start_.notify_one();
    work(body, 0);
    std::unique_lock lock(mutex_);
    body_ = nullptr;    // closed: who wakes up now goes back to sleep
    if (inside_ != 0) { // mostly they are about to end
        lock.unlock();
        for (int spin = 0; spin < spins_before_sleep && inside_.load() != 0; ++spin)
            relax();
        lock.lock();
    }
    done_.wait(lock, [this] { return inside_ == 0; });
    if (failure_)
        std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::work(const Body &body, int worker) noexcept
{
    try {
        for (std::int64_t task; (task = next_.fetch_add(1)) < tasks_;)
            body(task, worker);
    } catch (...) {
        next_.store(tasks_);
        const std::lock_guard lock(mutex_);
        if (!failure_)
            failure_ = std::current_exception();
    }
}

void ThreadPool::serve(int worker)
{
    std::uint64_t seen = 0;
    for (;;) {
        for (int spin = 0; spin < spins_before_sleep && round_.load() == seen && !ending_.load(); ++spin)
            relax();
        std::unique_lock lock(mutex_);
        start_.wait(lock, [&] { return ending_.load() || round_.load() != seen; });
        if (ending_.load())
            return;
        seen = round_.load();
        if (body_ == nullptr)
            continue;
        const Body &body = *body_;
        ++inside_;
        lock.unlock();
        work(body, worker);
        lock.lock();
        if (--inside_ == 0)
            done_.notify_one();
    }
}

} // namespace pgkm
