// unstoppable.cpp - one thread for work that cannot be stopped, and the end of the process beside it.
#include "engine/job/unstoppable.hpp"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/api.h"
#include "numeric/error.hpp"
#include "numeric/signals.hpp"

namespace pgkm {
namespace {

constexpr std::chrono::milliseconds between_polls{5};

struct Call {
    std::function<void(const Poll &)> work;
    std::uint64_t bytes;
    std::atomic<bool> left{false};
    std::exception_ptr failure; // what follows is guarded by `mutex`
    bool ended = false;
};

std::mutex mutex; // guards what follows
std::condition_variable changed;
bool taken = false; // by a call whose thread runs or is to be joined by its caller
std::thread thread; // joined by its caller, or by the next one when it was left behind
std::atomic<std::uint64_t> left_bytes{0};

void serve(const std::shared_ptr<Call> &call) noexcept
{
    std::exception_ptr failure;
    try {
        call->work([&] {
            if (call->left.load())
                throw Error(PGKM_CANCELLED, "cancelled");
        });
    } catch (...) {
        failure = std::current_exception();
    }
    call->work = nullptr;
    const std::lock_guard lock(mutex);
    call->failure = failure;
    call->ended = true;
    if (call->left.load()) {
        left_bytes.store(0);
        taken = false;
    }
    changed.notify_all();
}

template <typename Condition>
void wait_for(std::unique_lock<std::mutex> &lock, const Poll &poll, const Condition &condition)
{
    while (!changed.wait_for(lock, between_polls, condition)) {
        lock.unlock();
        poll();
        lock.lock();
    }
}

// exit() destroys static objects and what libraries hold, which a thread may compute with at the moment.
// By then the server has done all that its exit needs.
void end_at_once(int status)
{
    std::unique_lock lock(mutex);
    if (taken) {
        std::fflush(nullptr);
        _exit(status);
    }
    lock.unlock();
    if (thread.joinable())
        thread.join(); // it is past its last statement
}

// Called when a thread is left behind, thus after its libraries were opened: handlers run last in, first out.
void watch_exit()
{
#ifdef __GLIBC__
    static const int registered = on_exit([](int status, void *) { end_at_once(status); }, nullptr);
#else
    static const int registered = std::atexit([] { end_at_once(EXIT_FAILURE); });
#endif
    (void)registered;
}

// The caller's part is over: the thread has ended, or is left behind.
void finish(Call &call)
{
    std::unique_lock lock(mutex);
    if (!call.ended) {
        call.left.store(true);
        left_bytes.store(call.bytes);
        watch_exit();
        return;
    }
    lock.unlock();
    thread.join();
    lock.lock();
    taken = false;
    changed.notify_all();
}

} // namespace

void run_unstoppable(std::uint64_t bytes, std::function<void(const Poll &poll)> work, const Poll &poll)
{
    const auto call = std::make_shared<Call>();
    call->work = std::move(work);
    call->bytes = bytes;
    std::unique_lock lock(mutex);
    wait_for(lock, poll, [] { return !taken; });
    if (thread.joinable())
        thread.join(); // left behind, and past its last statement
    {
        const SignalsBlocked guard;
        thread = std::thread(serve, call);
    }
    taken = true;
    try {
        wait_for(lock, poll, [&] { return call->ended; });
    } catch (...) {
        finish(*call);
        throw;
    }
    lock.unlock();
    finish(*call);
    if (call->failure)
        std::rethrow_exception(call->failure);
}

} // namespace pgkm

uint64_t pgkm_bytes_left_behind(void)
{
    return pgkm::left_bytes.load();
}
