// key_masses.hpp - integer masses of rows, summed by the upper bits of their keys.
//
// Rows of such a bucket follow one another in canonical order, on every server alike. So sums of several servers add
// up. Equal rows share a bucket, however many they are: sums are kept in two halves, which no number of rows overflows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "cpu/seed/row_order.hpp"
#include "numeric/philox.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Buckets are told by at most so many bits of a key.
inline constexpr std::int32_t most_bucket_bits = 22;

inline std::uint64_t bucket_of(std::uint64_t key, std::int32_t bits)
{
    return bits == 0 ? 0 : key >> (64 - bits);
}

// Calls body(row, task) for each row, on all threads; a task's rows follow one another.
inline constexpr std::int64_t rows_per_task = 1 << 14;
template <typename Body>
void for_rows(const BlockRunner &runner, std::int64_t n, Body &&body)
{
    runner.run((n + rows_per_task - 1) / rows_per_task, [&](std::int64_t task) {
        for (std::int64_t row = task * rows_per_task; row < std::min(n, (task + 1) * rows_per_task); ++row)
            body(static_cast<std::size_t>(row), static_cast<std::size_t>(task));
    });
}

class KeyMasses {
  public:
    // order: the rows in canonical order; or nothing: then they have no places, and sums alone are known. keys: of each
    // row. order stays the caller's.
    KeyMasses(const BlockRunner &runner, const Buffer<RowNumber> &order, const Buffer<std::uint64_t> &keys,
              std::int32_t bits)
        : runner_(runner), order_(order), bits_(bits), buckets_(runner.budget(), keys.size()),
          sums_(runner.budget(), std::size_t{1} << bits, Sum{})
    {
        for_rows(runner, static_cast<std::int64_t>(keys.size()), [&](std::size_t row, std::size_t) {
            buckets_[row] = static_cast<std::uint32_t>(bucket_of(keys[row], bits));
        });
    }

    std::int32_t bits() const { return bits_; }
    std::int64_t row_at(std::int64_t place) const { return order_[static_cast<std::size_t>(place)]; }
    // The first place of a bucket's rows, or of those of the next one that has any.
    std::int64_t place_of(std::uint64_t bucket) const
    {
        return std::partition_point(order_.begin(), order_.end(), [&](auto row) { return buckets_[row] < bucket; }) -
               order_.begin();
    }

    // Sums mass(row) of all rows anew.
    template <typename Mass>
    void sum(Mass &&mass);
    // Takes from a row's mass; from any thread.
    void subtract(std::int64_t row, std::uint64_t mass)
    {
        Sum less;
        less.add(mass);
        add({-less.lower, -less.upper}, buckets_[static_cast<std::size_t>(row)]);
    }

    // By how much sums have changed since these changes were forgotten, or since 0: calls change(bucket, difference).
    template <typename Change>
    void for_changes(Change &&change) const
    {
        for (std::size_t bucket = 0; bucket < sums_.size(); ++bucket)
            if (const Int128 difference = sums_[bucket].whole(); difference != 0)
                change(static_cast<std::uint32_t>(bucket), difference);
    }
    void forget_change(std::uint32_t bucket) { sums_[bucket] = {}; }

  private:
    static constexpr int lower_bits = 23;
    // lower + upper * 2^23, both signed.
    struct Sum {
        std::uint64_t lower = 0, upper = 0;
        void add(std::uint64_t mass)
        {
            lower += mass & ((1 << lower_bits) - 1);
            upper += mass >> lower_bits;
        }
        Int128 whole() const
        {
            return Int128{static_cast<std::int64_t>(lower)} +
                   Int128{static_cast<std::int64_t>(upper)} * (1 << lower_bits);
        }
    };
    void add(const Sum &own, std::uint32_t bucket)
    {
        std::atomic_ref(sums_[bucket].lower).fetch_add(own.lower, std::memory_order_relaxed);
        std::atomic_ref(sums_[bucket].upper).fetch_add(own.upper, std::memory_order_relaxed);
    }

    const BlockRunner &runner_;
    const Buffer<RowNumber> &order_;
    std::int32_t bits_;
    Buffer<std::uint32_t> buckets_; // of each row
    Buffer<Sum> sums_;              // changes that were not taken yet
};

template <typename Mass>
void KeyMasses::sum(Mass &&mass)
{
    std::fill(sums_.begin(), sums_.end(), Sum{});
    const auto n = static_cast<std::int64_t>(buckets_.size());
    runner_.run((n + rows_per_task - 1) / rows_per_task, [&](std::int64_t task) {
        Sum sum; // of rows of one bucket that follow one another
        std::uint32_t bucket = 0;
        for (std::int64_t i = task * rows_per_task; i < std::min(n, (task + 1) * rows_per_task); ++i) {
            const std::int64_t row = order_.size() == 0 ? i : row_at(i);
            if (const std::uint32_t own = buckets_[static_cast<std::size_t>(row)]; own != bucket) {
                add(std::exchange(sum, Sum{}), bucket);
                bucket = own;
            }
            sum.add(static_cast<std::uint64_t>(mass(row)));
        }
        add(sum, bucket);
    });
}

} // namespace pgkm::cpu
