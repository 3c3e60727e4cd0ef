// row_order.cpp - sorts rows by key: the upper half of each key and the row's number are one integer.
//
// These integers are first dealt out to parts by their upper bits, so that parts are sorted side by side, by Highway's
// vectorised quicksort: no two are equal, so that any sort gives the same. Rows whose keys share the upper half are
// then put in order by whole key and content. They are few, or they repeat.
#include "cpu/seed/row_order.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hwy/contrib/sort/vqsort.h"

#include "cpu/seed/key_kernels.hpp"
#include "numeric/bit_rows.hpp"
#include "numeric/error.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t rows_per_part = 4096;
constexpr int most_part_bits = 14;
constexpr std::int64_t steps_per_poll = 1 << 16;

RowNumber row_of(std::uint64_t entry)
{
    return static_cast<RowNumber>(entry);
}

// How many upper bits of a key tell the parts.
int part_bits(std::int64_t n)
{
    int bits = 0;
    while (bits < most_part_bits && n >> bits > rows_per_part)
        ++bits;
    return bits;
}

std::size_t part_of(std::uint64_t entry, int bits)
{
    return bits == 0 ? 0 : entry >> (64 - bits);
}

// Parts are long where rows repeat: they are halved until a sort takes a moment.
void sort_entries(const BlockRunner &runner, const hwy::Sorter &sorter, std::uint64_t *first, std::uint64_t *last)
{
    runner.poll();
    if (last - first <= steps_per_poll) {
        sorter(first, static_cast<std::size_t>(last - first), hwy::SortAscending());
        return;
    }
    std::uint64_t *middle = first + (last - first) / 2;
    std::int64_t steps = 0;
    std::nth_element(first, middle, last, [&](std::uint64_t a, std::uint64_t b) {
        if (++steps % steps_per_poll == 0)
            runner.poll();
        return a < b;
    });
    sort_entries(runner, sorter, first, middle);
    sort_entries(runner, sorter, middle, last);
}

// Keys of rows, of rows of bits those of the same rows as float32.
template <typename T>
struct KeyOf {
    explicit KeyOf(const BlockRunner &, const SeedRows<T> &rows) : d(rows.d) {}
    std::uint64_t operator()(const T *row) const { return row_key(row, d); }

    std::int32_t d;
};
template <>
struct KeyOf<BitWord> {
    KeyOf(const BlockRunner &runner, const SeedRows<BitWord> &rows)
        : words(rows.d), steps(runner.budget(), rows.data->points.d)
    {
        for (std::size_t f = 0; f < steps.size(); ++f) {
            zeros += feature_term(0.0f, f);
            steps[f] = feature_term(1.0f, f) - feature_term(0.0f, f);
        }
    }
    std::uint64_t operator()(const BitWord *row) const
    {
        std::uint64_t sum = zeros;
        for (std::int64_t w = 0; w < words; ++w)
            for (BitWord word = row[w]; word != 0; word &= word - 1)
                sum += steps[w * word_bits + in_word(std::countr_zero(word))];
        return finish_key(sum);
    }

    std::int64_t words;
    Buffer<std::uint64_t> steps; // what a 1 adds to the sum of zeros
    std::uint64_t zeros = 0;
};

// Sorts rows that share the upper half of their keys. Most often they are equal. So the rows that equal one of them
// are set aside, and moved to their place among the others, which are sorted.
template <typename T>
void settle(const BlockRunner &runner, const SeedRows<T> &rows, std::uint64_t *first, std::uint64_t *last)
{
    std::int64_t steps = 0;
    const auto take_steps = [&] {
        steps += rows.d;
        if (steps < steps_per_poll)
            return;
        steps = 0;
        runner.poll();
    };
    const KeyOf<T> key_of(runner, rows);
    const auto before = [&](std::uint64_t a, std::uint64_t b) {
        take_steps();
        const T *x = rows.row(row_of(a)), *y = rows.row(row_of(b));
        const std::uint64_t key_x = key_of(x), key_y = key_of(y);
        return key_x != key_y ? key_x < key_y : compare_content(x, y, rows.d) < 0;
    };
    const std::uint64_t model = *first;
    std::uint64_t *others = std::partition(first, last, [&](std::uint64_t entry) {
        take_steps();
        return compare_content(rows.row(row_of(model)), rows.row(row_of(entry)), rows.d) == 0;
    });
    std::sort(others, last, before);
    std::rotate(first, others, std::lower_bound(others, last, model, before));
}

template <typename T>
void sort_part(const BlockRunner &runner, const SeedRows<T> &rows, std::uint64_t *first, std::uint64_t *last)
{
    sort_entries(runner, hwy::Sorter(), first, last);
    while (first != last) {
        std::uint64_t *end =
            std::find_if(first, last, [&](std::uint64_t entry) { return entry >> 32 != *first >> 32; });
        if (end - first > 1)
            settle(runner, rows, first, end);
        first = end;
    }
}

// Calls done(keys, first, last) when the keys of these rows are there.
template <typename T, typename Done>
Buffer<std::uint64_t> keys_of(const BlockRunner &runner, const SeedRows<T> &rows, Done &&done)
{
    Buffer<std::uint64_t> keys(runner.budget(), rows.n);
    [[maybe_unused]] const KeyKernels &kernels = key_kernels(runner.instruction_set());
    const KeyMarks marks(runner.budget(), rows.d, sizeof(T));
    const KeyOf<T> key_of(runner, rows);
    const std::int64_t size = seed_block_rows(rows.d);
    runner.run((rows.n + size - 1) / size, [&](std::int64_t block) {
        const std::int64_t first = block * size, last = std::min(first + size, rows.n);
        if constexpr (std::is_same_v<T, BitWord>)
            for (std::int64_t i = first; i < last; ++i)
                keys[i] = key_of(rows.row(i));
        else
            kernels.keys(rows.row(first), last - first, rows.d, marks, keys.data() + first);
        done(keys.data(), first, last);
    });
    return keys;
}

template <typename T>
Buffer<std::uint64_t> find_entries(const BlockRunner &runner, const SeedRows<T> &rows)
{
    return keys_of(runner, rows, [](std::uint64_t *entries, std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row)
            entries[row] = (entries[row] & ~std::uint64_t{0xffffffff}) | static_cast<std::uint64_t>(row);
    });
}

} // namespace

template <typename T>
Buffer<std::uint64_t> find_keys(const BlockRunner &runner, const SeedRows<T> &rows)
{
    return keys_of(runner, rows, [](std::uint64_t *, std::int64_t, std::int64_t) {});
}

void check_row_count(std::int64_t n)
{
    constexpr std::int64_t most = 0xffffffff;
    if (n > most)
        throw Error(PGKM_LIMIT, "the CPU backend seeds at most " + std::to_string(most) + " rows");
}

template <typename T>
Buffer<RowNumber> canonical_order(const BlockRunner &runner, const SeedRows<T> &rows)
{
    check_row_count(rows.n);
    Buffer<std::uint64_t> entries = find_entries(runner, rows);
    const int bits = part_bits(rows.n);
    std::vector<std::int64_t> ends((std::size_t{1} << bits) + 1, 0);
    if (bits > 0) {
        for (std::int64_t i = 0; i < rows.n; ++i) {
            if (i % steps_per_poll == 0)
                runner.poll();
            ++ends[part_of(entries[i], bits) + 1];
        }
        for (std::size_t part = 1; part < ends.size(); ++part)
            ends[part] += ends[part - 1];
        Buffer<std::uint64_t> dealt(runner.budget(), rows.n);
        std::vector<std::int64_t> next = ends;
        for (std::int64_t i = 0; i < rows.n; ++i) {
            if (i % steps_per_poll == 0)
                runner.poll();
            dealt[next[part_of(entries[i], bits)]++] = entries[i];
        }
        entries = std::move(dealt);
    } else {
        ends.back() = rows.n;
    }
    Buffer<RowNumber> order(runner.budget(), rows.n);
    runner.run(static_cast<std::int64_t>(ends.size()) - 1, [&](std::int64_t part) {
        sort_part(runner, rows, entries.data() + ends[part], entries.data() + ends[part + 1]);
        std::transform(entries.data() + ends[part], entries.data() + ends[part + 1], order.data() + ends[part], row_of);
    });
    return order;
}

template Buffer<std::uint64_t> find_keys(const BlockRunner &, const SeedRows<float> &);
template Buffer<std::uint64_t> find_keys(const BlockRunner &, const SeedRows<double> &);
template Buffer<RowNumber> canonical_order(const BlockRunner &, const SeedRows<BitWord> &);
template Buffer<RowNumber> canonical_order(const BlockRunner &, const SeedRows<float> &);
template Buffer<RowNumber> canonical_order(const BlockRunner &, const SeedRows<double> &);

} // namespace pgkm::cpu
