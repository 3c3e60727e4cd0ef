// distinct.hpp - which loaded rows differ: a sample that guesses how many, and a hash table that finds them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/context.hpp"
#include "cpu/seed/key_kernels.hpp"

namespace pgkm::cpu {

// Rows by group, key and content. -0 equals 0: no result tells them apart.
class RowKeys {
  public:
    // ends: of each group the row behind it, where there are several.
    explicit RowKeys(const Data &rows, const std::vector<std::int64_t> &ends = {});

    // The keys of `count` rows.
    void find(std::int64_t first, std::int64_t count, std::uint64_t *keys) const;
    bool are_equal(std::int64_t a, std::int64_t b) const;
    void look_ahead(std::int64_t row) const
    {
        __builtin_prefetch(this->row(row));
        __builtin_prefetch(this->row(row + 1) - 1);
    }
    const std::byte *row(std::int64_t i) const
    {
        return static_cast<const std::byte *>(rows_.points.values) + static_cast<std::size_t>(i) * row_bytes_;
    }
    std::size_t row_bytes() const { return row_bytes_; }
    void poll() const { rows_.context.poll(); }

  private:
    std::ptrdiff_t group_of(std::int64_t row) const
    {
        return std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin();
    }

    const Data &rows_;
    const std::vector<std::int64_t> ends_;
    const std::size_t row_bytes_;
    const KeyMarks marks_;
};

// Rows that differ, numbered as they come.
class DistinctRows {
  public:
    DistinctRows(Budget &budget, const RowKeys &keys);

    // The number of the row that equals this one, which counts for so many; itself, where it is new.
    std::uint32_t add(std::int64_t row, std::uint64_t key, std::int64_t copies);

    // Brings near what add() will compare a later row with.
    void look_ahead(std::uint64_t key) const
    {
        if (const std::uint32_t number = slots_[slot_of(key)]; number != no_row)
            keys_.look_ahead(rows_[number].row);
    }

    struct One {
        std::uint64_t key;
        std::int64_t copies;
        std::uint32_t row; // the first of them
    };
    std::int64_t size() const { return count_; }
    const One &operator[](std::int64_t number) const { return rows_[static_cast<std::size_t>(number)]; }

  private:
    static constexpr std::uint32_t no_row = 0xffffffff;
    std::size_t slot_of(std::uint64_t key) const { return key & (slots_.size() - 1); }
    void grow();

    Budget &budget_;
    const RowKeys &keys_;
    std::int64_t count_ = 0;
    Buffer<One> rows_;            // half as many as slots
    Buffer<std::uint32_t> slots_; // numbers, at the place of their key or behind it
};

using DistinctTables = std::vector<std::unique_ptr<DistinctRows>>;

// How many rows differ, from a sample; infinity where too few of it repeat to tell.
double guess_distinct(const Data &rows, const RowKeys &keys);

} // namespace pgkm::cpu
