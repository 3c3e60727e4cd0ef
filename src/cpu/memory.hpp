// memory.hpp - the accounted memory that all parts of the CPU backend allocate from.
//
// What passes a context's limit is Error(PGKM_LIMIT); what the system does not have is std::bad_alloc. Memory that is
// kept only to save time (Spare) is given up before a claim fails.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "numeric/error.hpp"

namespace pgkm::cpu {

// Memory that can be made again: its owner gives up what nobody uses at the moment. From any thread.
class Spare {
  public:
    virtual void give_up() = 0;

  protected:
    ~Spare() = default;

  private:
    friend class Budget;
    std::list<Spare *>::iterator place_; // among all that its budget knows
};

// Bytes that a context has allocated, against its limit (0: none). Safe from any thread.
class Budget {
  public:
    explicit Budget(std::uint64_t limit) : limit_(limit) {}

    void take(std::uint64_t bytes)
    {
        if (!try_take(bytes) && !take_from_spares(bytes))
            throw Error(PGKM_LIMIT, "the CPU backend needs " + std::to_string((used_.load() + bytes) / 1024) +
                                        " kB of working memory, more than is left of pg_kmeans.memory_limit (" +
                                        std::to_string(limit_ / 1024) + " kB)");
    }
    void give_back(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes); }
    // Whether `bytes` more would fit now: for parts that can do with less.
    bool allows(std::uint64_t bytes) const { return limit_ == 0 || used_.load() + bytes <= limit_; }

    // A spare is known from add() to remove(); these wait while it is asked to give up.
    void add(Spare &spare)
    {
        const std::lock_guard lock(mutex_);
        spare.place_ = spares_.insert(spares_.end(), &spare);
    }
    void remove(Spare &spare)
    {
        const std::lock_guard lock(mutex_);
        spares_.erase(spare.place_);
    }

  private:
    bool try_take(std::uint64_t bytes)
    {
        if (used_.fetch_add(bytes) + bytes <= limit_ || limit_ == 0)
            return true;
        used_.fetch_sub(bytes);
        return false;
    }
    // No more spares are given up than it takes. They are asked twice: one may use what another one then gives up.
    bool take_from_spares(std::uint64_t bytes)
    {
        const std::lock_guard lock(mutex_);
        for (int round = 0; round < 2; ++round)
            for (Spare *spare : spares_) {
                spare->give_up();
                if (try_take(bytes))
                    return true;
            }
        return false;
    }

    std::uint64_t limit_;
    std::atomic<std::uint64_t> used_{0};
    std::mutex mutex_; // spares_
    std::list<Spare *> spares_;
};

// Bytes of the budget for memory that something else allocates, such as a standard container.
class Reservation {
  public:
    Reservation(Budget &budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) { budget.take(bytes); }
    ~Reservation() { budget_.give_back(bytes_); }
    Reservation(const Reservation &) = delete;
    Reservation &operator=(const Reservation &) = delete;

  private:
    Budget &budget_;
    std::uint64_t bytes_;
};

// An accounted array of plain values, uninitialised. It starts on a 128-byte boundary and
// is padded to one, so that two threads' buffers never share a cache line.
template <typename T>
class Buffer {
  public:
    static constexpr std::size_t alignment = 128;

    Buffer() = default;
    Buffer(Budget &budget, std::size_t count) { allocate(budget, count, false); }
    Buffer(Budget &budget, std::size_t count, T value) : Buffer(budget, count) { std::fill_n(data_, count, value); }
    // Zeros that a large buffer gets from the system page by page as it is used: the time they take
    // falls to the parts that look at the cancel flag.
    static Buffer zeros(Budget &budget, std::size_t count) { return Buffer(budget, count, Zeroed()); }
    // Or an empty one where the budget does not allow it with as many bytes to spare.
    static Buffer if_room(Budget &budget, std::size_t count, std::uint64_t spare)
    {
        if (!budget.allows(count * sizeof(T) + 2 * alignment + spare))
            return {};
        try {
            return Buffer(budget, count);
        } catch (const Error &error) { // others may have taken what room there was
            if (error.status() != PGKM_LIMIT)
                throw;
            return {};
        }
    }
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer &operator=(Buffer &&other) noexcept
    {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    ~Buffer()
    {
        if (block_ == nullptr)
            return;
        std::free(block_);
        budget_->give_back(bytes_);
    }

    T *data() { return data_; }
    const T *data() const { return data_; }
    std::size_t size() const { return count_; }
    T &operator[](std::size_t i) { return data_[i]; }
    const T &operator[](std::size_t i) const { return data_[i]; }
    T *begin() { return data_; }
    T *end() { return data_ + count_; }
    const T *begin() const { return data_; }
    const T *end() const { return data_ + count_; }

  private:
    struct Zeroed {};
    Buffer(Budget &budget, std::size_t count, Zeroed) { allocate(budget, count, true); }

    void allocate(Budget &budget, std::size_t count, bool zeroed)
    {
        count_ = count;
        if (count == 0)
            return;
        if (count > (SIZE_MAX - 2 * alignment) / sizeof(T))
            throw std::bad_alloc();
        bytes_ = (count * sizeof(T) + 2 * alignment - 1) / alignment * alignment;
        budget.take(bytes_);
        block_ = zeroed ? std::calloc(1, bytes_) : std::malloc(bytes_);
        if (block_ == nullptr) {
            budget.give_back(bytes_);
            throw std::bad_alloc();
        }
        const auto address = reinterpret_cast<std::uintptr_t>(block_);
        data_ = reinterpret_cast<T *>((address + alignment - 1) / alignment * alignment);
        budget_ = &budget;
    }

    void swap(Buffer &other) noexcept
    {
        std::swap(block_, other.block_);
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        std::swap(bytes_, other.bytes_);
        std::swap(budget_, other.budget_);
    }

    void *block_ = nullptr;
    T *data_ = nullptr;
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
    Budget *budget_ = nullptr;
};

} // namespace pgkm::cpu
