// masses.hpp - integer masses of rows in canonical order, and draws by them.
//
// The order is cut into buckets of 256 places, and each has the sum of its rows' masses. A draw finds the bucket by
// prefix sums and walks it. Masses themselves are not stored: the caller knows how to make that of a row.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "cpu/seed/row_order.hpp"
#include "numeric/philox.hpp"

namespace pgkm::cpu {

class SeedMasses {
  public:
    static constexpr std::int64_t bucket_rows = 256; // entries.hpp: more copies would not fit
    // order: n rows in canonical order, or NULL where that is their own; it stays the caller's.
    SeedMasses(const BlockRunner &runner, std::int64_t n, const RowNumber *order)
        : runner_(runner), n_(n), order_(order), buckets_((n + bucket_rows - 1) / bucket_rows),
          places_(runner.budget(), order == nullptr ? 0 : n), sums_(runner.budget(), buckets_, 0),
          parts_(runner.budget(), (workers() - 1) * buckets_), ends_(runner.budget(), buckets_)
    {
        if (order_ == nullptr)
            return;
        runner_.run(tasks(), [&](std::int64_t task) {
            for (std::int64_t place = task * task_rows; place < std::min(n_, (task + 1) * task_rows); ++place)
                places_[order_[place]] = static_cast<RowNumber>(place);
        });
    }

    std::int64_t row_at(std::int64_t place) const { return order_ == nullptr ? place : order_[place]; }

    // Sums mass(row) of all rows anew: rows as they lie, since masses are read faster so, into sums of each worker.
    template <typename Mass>
    void sum(Mass &&mass)
    {
        std::fill(sums_.begin(), sums_.end(), 0);
        std::fill(parts_.begin(), parts_.end(), 0);
        runner_.run(workers(), [&](std::int64_t part) {
            std::uint64_t *own = part == 0 ? sums_.data() : parts_.data() + (part - 1) * buckets_;
            const std::int64_t last = n_ * (part + 1) / workers();
            for (std::int64_t row = n_ * part / workers(); row < last; ++row) {
                if (row % task_rows == 0)
                    runner_.poll();
                own[place_of(row) / bucket_rows] += static_cast<std::uint64_t>(mass(row));
            }
        });
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(parts_.size()); ++i)
            sums_[i % buckets_] += parts_[i];
    }

    // Takes from a row's mass; from any thread.
    void subtract(std::int64_t row, std::uint64_t mass)
    {
        std::uint64_t &sum = sums_[place_of(row) / bucket_rows];
        if (runner_.workers() == 1)
            sum -= mass;
        else
            std::atomic_ref(sum).fetch_sub(mass, std::memory_order_relaxed);
    }

    // To be called between a change of the sums and draws.
    void prepare()
    {
        UInt128 end = 0;
        for (std::int64_t bucket = 0; bucket < buckets_; ++bucket)
            ends_[bucket] = end += sums_[bucket];
    }
    UInt128 total() const { return ends_[buckets_ - 1]; }

    // The place of the first row in canonical order whose running sum passes the draw; the last row's where all masses
    // are 0.
    template <typename Mass>
    std::int64_t pick(std::uint64_t bits, Mass &&mass) const
    {
        const UInt128 target = scale_draw(bits, total());
        const std::int64_t bucket = std::upper_bound(ends_.begin(), ends_.end(), target) - ends_.begin();
        if (bucket == buckets_)
            return n_ - 1;
        UInt128 running = bucket == 0 ? 0 : ends_[bucket - 1];
        for (std::int64_t place = bucket * bucket_rows;; ++place) {
            running += static_cast<std::uint64_t>(mass(row_at(place)));
            if (running > target)
                return place;
        }
    }

  private:
    static constexpr std::int64_t task_rows = 16 * bucket_rows;
    std::int64_t place_of(std::int64_t row) const { return order_ == nullptr ? row : places_[row]; }
    std::int64_t tasks() const { return (n_ + task_rows - 1) / task_rows; }
    std::int64_t workers() const
    {
        return std::clamp<std::int64_t>(tasks(), 1, std::max<std::int64_t>(1, runner_.workers()));
    }

    const BlockRunner &runner_;
    std::int64_t n_;
    const RowNumber *order_;
    std::int64_t buckets_;
    Buffer<RowNumber> places_;           // of each row, unless that is its number
    Buffer<std::uint64_t> sums_, parts_; // by bucket; parts_: of workers beyond the first
    Buffer<UInt128> ends_;               // prefix sums
};

} // namespace pgkm::cpu
