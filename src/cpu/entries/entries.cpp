// entries.cpp - makes entries of rows that repeat, calls what works on them, and brings labels back to the rows.
#include "cpu/entries/entries.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "cpu/entries/distinct.hpp"
#include "cpu/operations.hpp"
#include "cpu/seed/masses.hpp"
#include "cpu/seed/runner.hpp"
#include "cpu/unless_short.hpp"

namespace pgkm::cpu {
namespace {

static_assert(most_copies <= partial_sum_length && SeedMasses::bucket_rows * most_copies <= std::int64_t{1} << 18);
// What making entries takes, in passes of a row by a centroid: less work than that goes to the rows.
constexpr double worth = 128.0;

constexpr std::int64_t rows_per_task = 1 << 16;
constexpr std::int64_t ahead = 16; // rows whose keys are looked up before their turn

// Rows between two looks at the cancel flag.
std::int64_t block_rows(const Data &rows)
{
    return std::min<std::int64_t>(1 << 11, seed_block_rows(rows.points.d));
}

// The rows that differ in each of as many ranges as there are threads; entry_of gets their numbers there. Empty where
// more than `most` differ.
DistinctTables find_in_ranges(const Data &rows, const RowKeys &keys, std::int64_t most, Buffer<std::uint32_t> &entry_of)
{
    Context &context = rows.context;
    const std::int64_t n = rows.points.n, parts = context.pool.size(), size = block_rows(rows);
    DistinctTables found(static_cast<std::size_t>(parts));
    std::atomic<bool> are_many{false};
    context.pool.run(parts, [&](std::int64_t part, int) {
        auto &own = found[static_cast<std::size_t>(part)];
        own = std::make_unique<DistinctRows>(context.budget, keys);
        Buffer<std::uint64_t> block(context.budget, size + ahead, 0);
        const std::int64_t last = n * (part + 1) / parts;
        for (std::int64_t first = n * part / parts; first < last && !are_many; first += size) {
            context.poll();
            const std::int64_t count = std::min(size, last - first);
            keys.find(first, count, block.data());
            for (std::int64_t i = 0; i < count; ++i) {
                own->look_ahead(block[i + ahead]);
                entry_of[first + i] = own->add(first + i, block[i], 1);
            }
            if (own->size() > most)
                are_many = true;
        }
    });
    if (are_many)
        found.clear();
    return found;
}

} // namespace

Entries::Entries(const Data &rows) : entry_of(rows.context.budget, rows.points.n), data{rows.context, rows.points}
{
    Context &context = rows.context;
    const RowKeys keys(rows);
    const std::int64_t n = rows.points.n, most = n / least_copies, per_poll = block_rows(rows);
    data.points.n = 0;
    const DistinctTables ranges = find_in_ranges(rows, keys, most, entry_of);
    if (ranges.empty())
        return;
    // Ranges have rows in common. They are dealt out by key to as many tables, which are filled side by side.
    const auto parts = static_cast<std::int64_t>(ranges.size());
    const auto table_of = [&](std::uint64_t key) { return static_cast<std::int64_t>(key >> 32) % parts; };
    DistinctTables tables(ranges.size());
    std::atomic<std::int64_t> found{0};
    std::vector<Buffer<std::uint32_t>> numbers; // in the tables, of the rows of each range
    for (const auto &range : ranges)
        numbers.emplace_back(context.budget, range->size());
    context.pool.run(parts, [&](std::int64_t t, int) {
        tables[t] = std::make_unique<DistinctRows>(context.budget, keys);
        for (std::int64_t part = 0; part < parts; ++part)
            for (std::int64_t i = 0; i < ranges[part]->size(); ++i) {
                if (i % per_poll == 0)
                    context.poll();
                const DistinctRows::One &one = (*ranges[part])[i];
                if (table_of(one.key) != t || found.load(std::memory_order_relaxed) > most)
                    continue;
                const std::int64_t before = tables[t]->size();
                numbers[part][i] = tables[t]->add(one.row, one.key, one.copies);
                found.fetch_add(tables[t]->size() - before, std::memory_order_relaxed);
            }
    });
    if (found > most)
        return;
    const std::vector<Buffer<std::uint32_t>> entries = take(rows, keys, tables, most);
    if (entries.empty())
        return;
    context.pool.run(parts, [&](std::int64_t part, int) {
        Buffer<std::uint32_t> &own = numbers[part];
        for (std::int64_t i = 0; i < ranges[part]->size(); ++i) {
            if (i % rows_per_task == 0)
                context.poll();
            own[i] = entries[table_of((*ranges[part])[i].key)][own[i]];
        }
        for (std::int64_t row = n * part / parts; row < n * (part + 1) / parts; ++row) {
            if (row % rows_per_task == 0)
                context.poll();
            entry_of[row] = own[entry_of[row]];
        }
    });
}

Entries::Entries(const Data &rows, const RowKeys &keys, const DistinctTables &differ) : data{rows.context, rows.points}
{
    data.points.n = 0;
    take(rows, keys, differ, std::numeric_limits<std::int64_t>::max());
}

// Makes entries of the rows of all tables: the number of the first one of each row. None where there were more than
// `most`.
std::vector<Buffer<std::uint32_t>> Entries::take(const Data &rows, const RowKeys &keys, const DistinctTables &tables,
                                                 std::int64_t most)
{
    Context &context = data.context;
    const std::int64_t per_poll = block_rows(rows);
    std::vector<Buffer<std::uint32_t>> entries;
    std::int64_t size = 0;
    for (const auto &table : tables) {
        Buffer<std::uint32_t> &first = entries.emplace_back(context.budget, table->size());
        for (std::int64_t i = 0; i < table->size(); ++i) {
            if (i % rows_per_task == 0)
                context.poll();
            first[i] = static_cast<std::uint32_t>(size);
            size += ((*table)[i].copies + most_copies - 1) / most_copies;
        }
    }
    if (size > most)
        return {};
    const std::size_t row_bytes = keys.row_bytes();
    values = Buffer<std::byte>(context.budget, static_cast<std::size_t>(size) * row_bytes);
    weights = Buffer<double>(context.budget, rows.points.weights == nullptr ? 0 : size);
    counts = Buffer<std::uint16_t>(context.budget, size);
    context.pool.run(std::ssize(tables), [&](std::int64_t t, int) {
        std::int64_t copied = 0;
        for (std::int64_t i = 0; i < tables[t]->size(); ++i) {
            const DistinctRows::One &one = (*tables[t])[i];
            std::size_t entry = entries[t][i];
            for (std::int64_t left = one.copies; left > 0; left -= most_copies, ++entry) {
                if (copied++ % per_poll == 0)
                    context.poll();
                std::memcpy(values.data() + entry * row_bytes, keys.row(one.row), row_bytes);
                if (weights.size() != 0)
                    weights[entry] = rows.points.weights[one.row];
                counts[entry] = static_cast<std::uint16_t>(std::min(left, most_copies));
            }
        }
    });
    data.points.values = values.data();
    data.points.weights = weights.size() == 0 ? nullptr : weights.data();
    data.points.n = size;
    data.counts = counts.data();
    return entries;
}

namespace {

// What making takes at the most: tables of ranges, which all rows may come in, and of what all have in common.
std::uint64_t making_bytes(const Data &rows, const RowKeys &keys, double differ)
{
    constexpr double of_row = 3.0 * (sizeof(DistinctRows::One) + 2 * sizeof(std::uint32_t)); // with room to grow
    const double n = static_cast<double>(rows.points.n);
    const double in_ranges = std::min(n, differ * rows.context.pool.size());
    return static_cast<std::uint64_t>(4.0 * n + of_row * (in_ranges + differ) +
                                      differ * static_cast<double>(keys.row_bytes() + 10));
}

} // namespace

bool seem_to_repeat(const Data &rows, const RowKeys &keys)
{
    const double differ = guess_distinct(rows, keys);
    return differ * expected_copies <= static_cast<double>(rows.points.n) &&
           rows.context.budget.allows(making_bytes(rows, keys, differ));
}

namespace {

// The entries, if there are some, or making them is worth it for so many passes.
std::shared_ptr<Entries> entries_of(Data &rows, const PgkmProblem &problem, double passes)
{
    const std::int64_t n = rows.points.n;
    if (n < least_rows_of_entries || n > 0xffffffff || rows.counts != nullptr || problem.n_rows != n ||
        problem.peers != nullptr)
        return nullptr;
    if (rows.entries != nullptr || !rows.may_repeat || passes * problem.k < worth)
        return rows.entries;
    rows.entries = unless_short([&]() -> std::shared_ptr<Entries> {
        return seem_to_repeat(rows, RowKeys(rows)) ? std::make_shared<Entries>(rows) : nullptr;
    });
    if (rows.entries != nullptr && rows.entries->size() == 0)
        rows.entries.reset();
    rows.may_repeat = rows.entries != nullptr;
    return rows.entries;
}

// body(data, problem) on the entries. False where it finds too little memory beside them: then the problem, and
// centroids that it changes (is_fit), are as they were.
template <typename Problem, typename Body>
bool run_of(Entries &entries, Problem &problem, bool is_fit, Body &&body)
{
    Data &data = entries.data;
    const std::size_t bytes = is_fit ? static_cast<std::size_t>(problem.k) * shape_of(data.points).row_bytes() : 0;
    try {
        Buffer<std::byte> centroids(data.context.budget, bytes);
        on_copy(problem, entries.size(), {centroids.data(), bytes}, [&](PgkmProblem *own) { body(data, own); });
        return true;
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT)
            throw;
        return false;
    }
}

// The same on the entries of loaded rows, where there is one problem and it has some; else on the rows.
template <typename Problem, typename Body>
void run(Data &rows, Problem *problems, std::int64_t n_problems, double passes, bool is_fit, Body &&body)
{
    if (const auto entries = n_problems == 1 ? entries_of(rows, *problems, passes) : nullptr) {
        if (run_of(*entries, *problems, is_fit, body))
            return;
        rows.may_repeat = false;
    }
    rows.entries.reset();
    body(rows, problems);
}

// to[row] = from[entry of the row].
template <typename T>
void spread(const Entries &entries, const Buffer<T> &from, T *to)
{
    Context &context = entries.data.context;
    const auto n = static_cast<std::int64_t>(entries.entry_of.size());
    context.pool.run((n + rows_per_task - 1) / rows_per_task, [&](std::int64_t task, int) {
        context.poll();
        for (std::int64_t row = task * rows_per_task; row < std::min(n, (task + 1) * rows_per_task); ++row)
            to[row] = from[entries.entry_of[row]];
    });
}

// assign() of entries; what is asked of each row comes from its entry.
void assign_rows_of(Entries &entries, const PgkmProblem &problem, const PgkmAssignment &wanted)
{
    Budget &budget = entries.data.context.budget;
    Buffer<std::int32_t> labels(budget, wanted.labels == nullptr ? 0 : entries.size());
    Buffer<double> distances(budget, wanted.distances == nullptr ? 0 : entries.size());
    PgkmAssignment found = wanted;
    found.labels = labels.data();
    found.distances = distances.data();
    assign(entries.data, &problem, 1, &found);
    if (wanted.labels != nullptr)
        spread(entries, labels, wanted.labels);
    if (wanted.distances != nullptr)
        spread(entries, distances, wanted.distances);
}

} // namespace

void seed_entries(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params)
{
    if (params->init == PGKM_INIT_FIRST)
        return seed(data, problems, n_problems, params);
    run(data, problems, n_problems, worth, false,
        [&](Data &on, PgkmProblem *own) { seed(on, own, n_problems, params); });
}

void fit_entries(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params)
{
    run(data, problems, n_problems, std::min<double>(params->max_iter, expected_iterations), true,
        [&](Data &on, PgkmProblem *own) { fit(on, own, n_problems, params); });
}

void assign_entries(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments)
{
    run(data, problems, n_problems, 0.0, false, [&](Data &on, const PgkmProblem *own) {
        if (&on == &data)
            assign(data, own, n_problems, assignments);
        else
            assign_rows_of(*data.entries, *own, *assignments);
    });
}

bool seed_of(Entries &entries, PgkmProblem &problem, const PgkmSeedParams &params)
{
    return run_of(entries, problem, false, [&](Data &on, PgkmProblem *own) { seed(on, own, 1, &params); });
}

bool fit_of(Entries &entries, PgkmProblem &problem, const PgkmFitParams &params)
{
    return run_of(entries, problem, true, [&](Data &on, PgkmProblem *own) { fit(on, own, 1, &params); });
}

bool assign_of(Entries &entries, const PgkmProblem &problem, PgkmAssignment &wanted)
{
    return run_of(entries, problem, false, [&](Data &on, const PgkmProblem *own) { assign(on, own, 1, &wanted); });
}

} // namespace pgkm::cpu
