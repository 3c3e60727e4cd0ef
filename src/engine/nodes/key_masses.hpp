// key_masses.hpp - integer masses of rows, summed by the upper bits of their keys.
//
// Rows of such a bucket follow one another in canonical order, on every server alike. So sums of several servers add
// up. Equal rows share a bucket, however many they are: sums are kept in two halves, which no number of rows overflows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpu/seed/row_order.hpp"
#include "numeric/philox.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Buckets are told by at most so many bits of a key.
inline constexpr std::int32_t most_bucket_bits = 22;

inline std::uint64_t bucket_of(std::uint64_t key, std::int32_t bits)
{
    return bits == 0 ? 0 : key >> (64 - bits);
}

class KeyMasses {
  public:
    // order: the rows in canonical order, of which there is at least one; or nothing: then they have no places, and
    // sums alone are known. keys: of each row. order stays the caller's.
    KeyMasses(const cpu::BlockRunner &runner, const cpu::Buffer<cpu::RowNumber> &order,
              const cpu::Buffer<std::uint64_t> &keys, std::int32_t bits);

    std::int32_t bits() const { return bits_; }
    std::int64_t n() const { return static_cast<std::int64_t>(buckets_.size()); }
    std::int64_t row_at(std::int64_t place) const { return order_[static_cast<std::size_t>(place)]; }
    // The places of a bucket: the first, and the one behind the last.
    std::pair<std::int64_t, std::int64_t> places(std::uint64_t bucket) const
    {
        return {starts_[bucket], starts_[bucket + 1]};
    }

    // Sums mass(row) of all rows anew.
    template <typename Mass>
    void sum(Mass &&mass);
    // Adds to a row's mass, or takes from it; from any thread.
    void add(std::int64_t row, std::uint64_t mass) { change(row, mass, 1); }
    void subtract(std::int64_t row, std::uint64_t mass) { change(row, mass, -1); }

    // By how much sums have changed since the last call, or since 0: calls change(bucket, difference).
    template <typename Change>
    void take_changes(Change &&change);
    void forget_changes() { std::fill(taken_.begin(), taken_.end(), Sum{0, 0}); }

  private:
    static constexpr int lower_bits = 23;
    static constexpr std::uint64_t lower_mask = (1 << lower_bits) - 1;
    static constexpr std::int64_t task_rows = 1 << 13;
    // lower + upper * 2^23, both signed.
    struct Sum {
        std::uint64_t lower, upper;
        Int128 whole() const
        {
            return Int128{static_cast<std::int64_t>(lower)} +
                   Int128{static_cast<std::int64_t>(upper)} * (1 << lower_bits);
        }
    };
    void change(std::int64_t row, std::uint64_t mass, std::int64_t sign)
    {
        add({(mass & lower_mask) * static_cast<std::uint64_t>(sign),
             (mass >> lower_bits) * static_cast<std::uint64_t>(sign)},
            buckets_[static_cast<std::size_t>(row)]);
    }
    void add(const Sum &own, std::size_t bucket)
    {
        std::atomic_ref(sums_[bucket].lower).fetch_add(own.lower, std::memory_order_relaxed);
        std::atomic_ref(sums_[bucket].upper).fetch_add(own.upper, std::memory_order_relaxed);
    }

    const cpu::BlockRunner &runner_;
    const cpu::Buffer<cpu::RowNumber> &order_;
    std::int32_t bits_;
    cpu::Buffer<std::uint32_t> buckets_; // of each row
    cpu::Buffer<std::int64_t> starts_;
    cpu::Buffer<Sum> sums_;
    cpu::Buffer<Sum> taken_;
};

template <typename Mass>
void KeyMasses::sum(Mass &&mass)
{
    std::fill(sums_.begin(), sums_.end(), Sum{0, 0});
    runner_.run((n() + task_rows - 1) / task_rows, [&](std::int64_t task) {
        std::int64_t place = task * task_rows;
        const std::int64_t end = std::min(n(), place + task_rows);
        if (order_.size() == 0) {
            for (; place < end; ++place)
                add(place, static_cast<std::uint64_t>(mass(place)));
            return;
        }
        auto bucket =
            static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), place) - starts_.begin() - 1);
        for (; place < end; ++bucket) {
            Sum sum = {0, 0};
            for (; place < std::min(end, starts_[bucket + 1]); ++place) {
                const auto own = static_cast<std::uint64_t>(mass(row_at(place)));
                sum.lower += own & lower_mask;
                sum.upper += own >> lower_bits;
            }
            add(sum, bucket);
        }
    });
}

template <typename Change>
void KeyMasses::take_changes(Change &&change)
{
    for (std::size_t bucket = 0; bucket < sums_.size(); ++bucket) {
        const Sum &now = sums_[bucket];
        Sum &then = taken_[bucket];
        if (now.lower == then.lower && now.upper == then.upper)
            continue;
        change(static_cast<std::uint32_t>(bucket), now.whole() - then.whole());
        then = now;
    }
}

} // namespace pgkm::nodes
