// scheduler.hpp - who computes next on a device, and with how much of its memory.
//
// Two things are shared out. A *turn* is the right to have one call at work on the device; it
// is held for a call. A *reservation* is device memory for loaded rows and what their fits need; it is
// held from load to unload. Both are given in order of arrival, but one turn, and an eighth of
// the memory, is kept from large calls and loads, so that a small one never waits for a large
// one's end. While a large load waits, small ones live off their eighth: it cannot starve.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>

#include "numeric/platform.hpp"

namespace pgkm::service {

using Cancelled = std::function<bool()>;

struct Reservation {
    std::uint64_t bytes;
    bool small;
};

class Scheduler {
  public:
    Scheduler(std::int32_t jobs, std::uint64_t memory);

    // From now on; what was given stays given.
    void set_limits(std::int32_t jobs, std::uint64_t memory);

    // Both wait until it is their turn; throw Error(PGKM_CANCELLED) when `cancelled` says so first.
    void begin(bool small, const Cancelled &cancelled);
    void end(bool small);
    // Up to `wanted` bytes, never more than a large load may have.
    std::uint64_t largest_reservation() const;
    // What any load may take without being in anybody's way: it counts as small.
    std::uint64_t fair_share() const;
    // Memory beside what is reserved and what is waited for; negative when more is waited for.
    std::int64_t room() const;
    Reservation reserve(std::uint64_t wanted, const Cancelled &cancelled)
    {
        return await_reservation(queue_reservation(wanted), cancelled);
    }
    void give_back(const Reservation &reservation);
    // The two parts of reserve(): a place in the queue, which is held until the wait ends, however it ends.
    struct Waiting {
        bool small;
        std::uint64_t wanted; // 0: a turn
    };
    using Queue = std::list<Waiting>;
    Queue::iterator queue_reservation(std::uint64_t wanted);
    Reservation await_reservation(Queue::iterator place, const Cancelled &cancelled);
    // Whether there would be nothing to wait for.
    bool can_reserve(std::uint64_t wanted) const;

    struct Counts {
        std::int32_t running;
        std::int32_t waiting;
        std::uint64_t reserved;
        std::uint64_t memory; // that can be reserved
    };
    Counts counts() const;

  private:
    Waiting waiting_for(std::uint64_t wanted) const;
    template <typename Possible>
    void wait(std::unique_lock<std::mutex> &lock, Queue &queue, Queue::iterator own, const Cancelled &cancelled,
              Possible &&possible);
    bool turn_possible(const Waiting &one) const;
    bool memory_possible(const Waiting &one) const;
    std::uint64_t kept() const { return memory_ / 8; }
    bool is_small(std::uint64_t bytes) const { return bytes <= kept() / 4; }

    mutable std::mutex mutex_; // guards what follows
    std::condition_variable changed_;
    std::int32_t jobs_;
    std::uint64_t memory_;
    Queue turns_, reservations_;
    std::int32_t running_ = 0, running_large_ = 0;
    std::uint64_t reserved_ = 0, reserved_small_ = 0;
};

} // namespace pgkm::service
