// distinct.cpp - keys of rows, a table with linear probing, and a sample for the guess of Chao (1984).
#include "cpu/entries/distinct.hpp"

#include <algorithm>
#include <cstring>

#include "backend/entries.hpp"
#include "cpu/seed/runner.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t least_sampled = 1 << 9;
constexpr std::int64_t rows_per_poll = 1 << 16; // moved to a larger table

} // namespace

RowKeys::RowKeys(const Data &rows, const std::vector<std::int64_t> &ends)
    : rows_(rows), ends_(ends), row_bytes_(shape_of(rows.points).row_bytes()),
      marks_(rows.context.budget, rows.points.d, shape_of(rows.points).element_bytes())
{
}

void RowKeys::find(std::int64_t first, std::int64_t count, std::uint64_t *keys) const
{
    const PgkmPoints &points = rows_.points;
    const KeyKernels &kernels = key_kernels(rows_.context.instruction_set);
    with_element(points, [&](auto element) {
        kernels.keys(static_cast<const decltype(element) *>(points.values) + first * points.d, count, points.d, marks_,
                     keys);
    });
    if (points.weights != nullptr)
        for (std::int64_t i = 0; i < count; ++i)
            keys[i] = finish_key(keys[i] + key_bits(points.weights[first + i]));
    if (ends_.size() <= 1)
        return;
    std::ptrdiff_t group = group_of(first);
    for (std::int64_t i = 0; i < count; ++i) {
        while (ends_[group] <= first + i)
            ++group;
        keys[i] = finish_key(keys[i] + static_cast<std::uint64_t>(group));
    }
}

bool RowKeys::are_equal(std::int64_t a, std::int64_t b) const
{
    const PgkmPoints &points = rows_.points;
    if (points.weights != nullptr && points.weights[a] != points.weights[b])
        return false;
    if (ends_.size() > 1 && group_of(a) != group_of(b))
        return false;
    if (std::memcmp(row(a), row(b), row_bytes_) == 0)
        return true;
    bool equal = false;
    with_element(points, [&](auto element) {
        using T = decltype(element);
        equal =
            compare_content(reinterpret_cast<const T *>(row(a)), reinterpret_cast<const T *>(row(b)), points.d) == 0;
    });
    return equal;
}

DistinctRows::DistinctRows(Budget &budget, const RowKeys &keys) : budget_(budget), keys_(keys)
{
    grow();
}

void DistinctRows::grow()
{
    const std::size_t size = std::max<std::size_t>(256, 2 * slots_.size());
    Buffer<One> rows(budget_, size / 2);
    for (std::int64_t first = 0; first < count_; first += rows_per_poll) {
        keys_.poll();
        std::copy_n(rows_.begin() + first, std::min(rows_per_poll, count_ - first), rows.begin() + first);
    }
    rows_ = std::move(rows);
    slots_ = Buffer<std::uint32_t>();
    slots_ = Buffer<std::uint32_t>(budget_, size, no_row);
    for (std::int64_t number = 0; number < count_; ++number) {
        if (number % rows_per_poll == 0)
            keys_.poll();
        std::size_t slot = slot_of((*this)[number].key);
        while (slots_[slot] != no_row)
            slot = (slot + 1) & (size - 1);
        slots_[slot] = static_cast<std::uint32_t>(number);
    }
}

std::uint32_t DistinctRows::add(std::int64_t row, std::uint64_t key, std::int64_t copies)
{
    std::size_t slot = slot_of(key);
    for (; slots_[slot] != no_row; slot = (slot + 1) & (slots_.size() - 1)) {
        One &one = rows_[slots_[slot]];
        if (one.key == key && keys_.are_equal(one.row, row)) {
            one.copies += copies;
            return slots_[slot];
        }
    }
    const auto number = static_cast<std::uint32_t>(count_++);
    slots_[slot] = number;
    rows_[number] = {key, copies, static_cast<std::uint32_t>(row)};
    if (static_cast<std::size_t>(count_) == rows_.size())
        grow();
    return number;
}

// The places are drawn, each on its own: rows may have come in order.
double guess_distinct(const Data &rows, const RowKeys &keys)
{
    const std::int64_t n = rows.points.n, wanted = std::max(least_sampled, DistinctGuess::sample_of(n));
    const std::int64_t per_poll = std::min<std::int64_t>(64, seed_block_rows(rows.points.d));
    Buffer<std::uint64_t> sample(rows.context.budget, wanted);
    for (std::int64_t i = 0; i < wanted; ++i)
        sample[i] = finish_key(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(n);
    std::sort(sample.begin(), sample.end());
    const std::int64_t count = std::unique(sample.begin(), sample.end()) - sample.begin();
    for (std::int64_t i = 0; i < count; ++i) {
        if (i % per_poll == 0)
            rows.context.poll();
        keys.find(static_cast<std::int64_t>(sample[i]), 1, sample.data() + i);
    }
    std::sort(sample.begin(), sample.begin() + count);
    DistinctGuess guess;
    std::uint32_t before = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        before = i > 0 && sample[i] == sample[i - 1] ? before + 1 : 0;
        guess.add(before);
    }
    return guess.distinct();
}

} // namespace pgkm::cpu
