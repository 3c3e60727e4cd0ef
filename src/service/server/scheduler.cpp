// scheduler.cpp - the queues for turns and for memory.
#include "service/server/scheduler.hpp"

#include <algorithm>
#include <chrono>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

constexpr auto slice = std::chrono::milliseconds(5); // between two looks at the cancel flag

} // namespace

Scheduler::Scheduler(std::int32_t jobs, std::uint64_t memory) : jobs_(jobs), memory_(memory) {}

void Scheduler::set_limits(std::int32_t jobs, std::uint64_t memory)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_ = jobs;
    memory_ = memory;
    changed_.notify_all();
}

// Waits until nobody before `own` could go and `own` can; leaves the queue either way.
template <typename Possible>
void Scheduler::wait(std::unique_lock<std::mutex> &lock, Queue &queue, Queue::iterator own, const Cancelled &cancelled,
                     Possible &&possible)
{
    const auto first_possible = [&] { return std::find_if(queue.begin(), queue.end(), possible) == own; };
    bool stopped = false;
    while (!stopped && !first_possible()) {
        changed_.wait_for(lock, slice);
        lock.unlock(); // what is asked may free memory
        stopped = cancelled();
        lock.lock();
    }
    queue.erase(own);
    changed_.notify_all();
    if (stopped)
        throw Error(PGKM_CANCELLED, "cancelled");
}

bool Scheduler::turn_possible(const Waiting &one) const
{
    // With one turn there is none to keep.
    return running_ < jobs_ && (one.small || running_large_ < std::max(1, jobs_ - 1));
}

void Scheduler::begin(bool small, const Cancelled &cancelled)
{
    std::unique_lock<std::mutex> lock(mutex_);
    const auto own = turns_.insert(turns_.end(), {small, 0});
    wait(lock, turns_, own, cancelled, [&](const Waiting &one) { return turn_possible(one); });
    ++running_;
    running_large_ += small ? 0 : 1;
}

void Scheduler::end(bool small)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    running_large_ -= small ? 0 : 1;
    changed_.notify_all();
}

std::uint64_t Scheduler::largest_reservation() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return memory_ - kept();
}

std::uint64_t Scheduler::fair_share() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return (memory_ - kept()) / (8 * static_cast<std::uint64_t>(std::max(4, jobs_)));
}

std::int64_t Scheduler::room() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    std::int64_t room = static_cast<std::int64_t>(memory_) - static_cast<std::int64_t>(reserved_);
    for (const Waiting &one : reservations_)
        room -= static_cast<std::int64_t>(one.wanted);
    return room;
}

bool Scheduler::memory_possible(const Waiting &one) const
{
    if (reserved_ == 0)
        return true; // also when the limit was lowered meanwhile
    if (reserved_ + one.wanted > memory_)
        return false;
    if (!one.small)
        return reserved_ - reserved_small_ + one.wanted <= memory_ - kept();
    const bool large_waits =
        std::any_of(reservations_.begin(), reservations_.end(), [](const Waiting &other) { return !other.small; });
    return !large_waits || reserved_small_ + one.wanted <= kept();
}

Scheduler::Waiting Scheduler::waiting_for(std::uint64_t wanted) const
{
    const std::uint64_t granted = std::min(wanted, memory_ - kept());
    return {is_small(granted), granted};
}

bool Scheduler::can_reserve(std::uint64_t wanted) const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return reservations_.empty() && memory_possible(waiting_for(wanted));
}

Scheduler::Queue::iterator Scheduler::queue_reservation(std::uint64_t wanted)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return reservations_.insert(reservations_.end(), waiting_for(wanted));
}

Reservation Scheduler::await_reservation(Queue::iterator place, const Cancelled &cancelled)
{
    std::unique_lock<std::mutex> lock(mutex_);
    const Waiting asked = *place;
    wait(lock, reservations_, place, cancelled, [&](const Waiting &one) { return memory_possible(one); });
    reserved_ += asked.wanted;
    reserved_small_ += asked.small ? asked.wanted : 0;
    return {asked.wanted, asked.small};
}

void Scheduler::give_back(const Reservation &reservation)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    reserved_ -= reservation.bytes;
    reserved_small_ -= reservation.small ? reservation.bytes : 0;
    changed_.notify_all();
}

Scheduler::Counts Scheduler::counts() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return {running_, static_cast<std::int32_t>(turns_.size() + reservations_.size()), reserved_, memory_};
}

} // namespace pgkm::service
