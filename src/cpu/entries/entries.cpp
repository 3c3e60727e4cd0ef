// entries.cpp - makes entries of rows that repeat, calls what works on them, and brings labels back to the rows.
#include "cpu/entries/entries.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
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
constexpr std::int64_t problems_per_poll = 1 << 14;
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

Entries::Entries(const Data &rows, const std::vector<std::int64_t> &group_ends)
    : entry_of(rows.context.budget, rows.points.n), data{rows.context, rows.points}, ends(group_ends)
{
    Context &context = rows.context;
    const RowKeys keys(rows, ends);
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

Entries::Entries(const Data &rows, std::int64_t n, const RowKeys &keys, const DistinctTables &differ)
    : data{rows.context, rows.points}, ends{n}
{
    data.points.n = 0;
    take(rows, keys, differ, std::numeric_limits<std::int64_t>::max());
}

// Makes entries of the rows of all tables, group by group: each table has its rows as they come. The number of the
// first one of each row. None where there were more than `most`.
std::vector<Buffer<std::uint32_t>> Entries::take(const Data &rows, const RowKeys &keys, const DistinctTables &tables,
                                                 std::int64_t most)
{
    Context &context = data.context;
    const std::int64_t per_poll = block_rows(rows);
    std::vector<Buffer<std::uint32_t>> entries;
    std::int64_t size = 0;
    for (const auto &table : tables)
        entries.emplace_back(context.budget, table->size());
    std::vector<std::int64_t> next(tables.size(), 0);
    for (const std::int64_t end : ends) {
        for (std::size_t t = 0; t < tables.size(); ++t)
            for (std::int64_t &i = next[t]; i < tables[t]->size() && (*tables[t])[i].row < end; ++i) {
                if (i % rows_per_task == 0)
                    context.poll();
                entries[t][i] = static_cast<std::uint32_t>(size);
                size += ((*tables[t])[i].copies + most_copies - 1) / most_copies;
            }
        if (std::ssize(entry_ends) % problems_per_poll == 0)
            context.poll();
        entry_ends.push_back(size);
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

bool seem_to_repeat(const Data &rows, const RowKeys &keys)
{
    const double differ = guess_distinct(rows, keys);
    return differ * expected_copies <= static_cast<double>(rows.points.n) &&
           rows.context.budget.allows(making_bytes(rows, keys, differ));
}

} // namespace

std::shared_ptr<Entries> make_entries(const Data &rows, const std::vector<std::int64_t> &group_ends)
{
    return unless_short([&]() -> std::shared_ptr<Entries> {
        if (rows.points.n > 0xffffffff || !seem_to_repeat(rows, RowKeys(rows, group_ends)))
            return nullptr;
        auto made = std::make_shared<Entries>(rows, group_ends);
        return made->size() == 0 ? nullptr : made;
    });
}

PgkmProblem Entries::problem_of(const PgkmProblem &problem) const
{
    PgkmProblem own = problem;
    own.first_row = own.n_rows = 0;
    const std::int64_t end = problem.first_row + problem.n_rows;
    const std::ptrdiff_t group = std::lower_bound(ends.begin(), ends.end(), end) - ends.begin();
    if (group == std::ssize(ends) || ends[group] != end || problem.first_row != (group == 0 ? 0 : ends[group - 1]))
        return own;
    own.first_row = group == 0 ? 0 : entry_ends[group - 1];
    own.n_rows = entry_ends[group] - own.first_row;
    return own;
}

namespace {

// The row behind each group of rows that a problem has. Nothing where that is not all rows, or most of them lie in
// groups that are small.
std::vector<std::int64_t> groups_of(const Data &rows, const PgkmProblem *problems, const PgkmProblem *end)
{
    const auto in_large = [&](const auto &first, const auto &last, const auto &size_of) {
        std::int64_t n = 0, large = 0;
        for (auto each = first; each != last; ++each) {
            n += size_of(*each);
            large += size_of(*each) >= least_rows_of_entries ? size_of(*each) : 0;
        }
        return 2 * large >= n;
    };
    if (!in_large(problems, end, [](const PgkmProblem &each) { return each.n_rows; }))
        return {};
    std::vector<std::pair<std::int64_t, std::int64_t>>
        spans; // first rows and numbers: several problems may have the same
    for (const PgkmProblem *each = problems; each != end; ++each) {
        if (std::ssize(spans) % problems_per_poll == 0)
            rows.context.poll();
        if (spans.empty() || spans.back().first != each->first_row)
            spans.emplace_back(each->first_row, each->n_rows);
    }
    if (!std::is_sorted(spans.begin(), spans.end())) {
        std::sort(spans.begin(), spans.end());
        spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
    }
    std::vector<std::int64_t> ends;
    std::int64_t n = 0;
    for (const auto &[first, size] : spans) {
        if (first != n)
            return {};
        ends.push_back(n += size);
    }
    return n == rows.points.n && in_large(spans.begin(), spans.end(), [](const auto &span) { return span.second; })
               ? ends
               : std::vector<std::int64_t>();
}

// The entries, if there are some of these problems, or making them is worth it for so many passes.
std::shared_ptr<Entries> entries_of(Data &rows, const PgkmProblem *problems, std::int64_t n_problems, double passes)
{
    const std::int64_t n = rows.points.n;
    const PgkmProblem *const end = problems + n_problems;
    if (n < least_rows_of_entries || rows.counts != nullptr || n_problems == 0 || rows.points.element == PGKM_BIT ||
        std::any_of(problems, end, [](const PgkmProblem &each) { return each.peers != nullptr; }))
        return nullptr;
    const std::int32_t k = std::max_element(problems, end, [](auto &a, auto &b) { return a.k < b.k; })->k;
    if (rows.entries == nullptr && rows.may_repeat && passes * k >= worth)
        if (const std::vector<std::int64_t> ends = groups_of(rows, problems, end); !ends.empty()) {
            rows.entries = make_entries(rows, ends);
            rows.may_repeat = rows.entries != nullptr;
        }
    const auto has = [&](const PgkmProblem &each) { return rows.entries->problem_of(each).n_rows > 0; };
    return rows.entries != nullptr && std::all_of(problems, end, has) ? rows.entries : nullptr;
}

// body(data, problems) on the entries. False where it finds too little memory beside them: then the problems, and
// centroids that it changes (is_fit), are as they were.
template <typename Problem, typename Body>
bool run_of(Entries &entries, Problem *problems, std::int64_t n_problems, bool is_fit, Body &&body)
{
    Data &data = entries.data;
    std::vector<PgkmProblem> own;
    std::int64_t k = 0; // of all
    for (const Problem *each = problems; each != problems + n_problems; k += each++->k)
        own.push_back(entries.problem_of(*each));
    const std::size_t row_bytes = is_fit ? shape_of(data.points).row_bytes() : 0;
    try {
        Buffer<std::byte> centroids(data.context.budget, static_cast<std::size_t>(k) * row_bytes);
        on_copies(problems, own, row_bytes, centroids.data(), [&](PgkmProblem *each) { body(data, each); });
        return true;
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT)
            throw;
        return false;
    }
}

// The same on the entries of loaded rows, where these problems have some; else on the rows.
template <typename Problem, typename Body>
void run(Data &rows, Problem *problems, std::int64_t n_problems, double passes, bool is_fit, Body &&body)
{
    if (const auto entries = entries_of(rows, problems, n_problems, passes)) {
        if (run_of(*entries, problems, n_problems, is_fit, body))
            return;
        rows.may_repeat = false;
    }
    rows.entries.reset();
    body(rows, problems);
}

// to[i] = from[entry of the problem's row i]: of its entries, `own`.
template <typename T>
void spread(const Entries &entries, const PgkmProblem &problem, const PgkmProblem &own, const T *from, T *to)
{
    Context &context = entries.data.context;
    const std::uint32_t *const entry_of = entries.entry_of.data() + problem.first_row;
    context.pool.run((problem.n_rows + rows_per_task - 1) / rows_per_task, [&](std::int64_t task, int) {
        context.poll();
        for (std::int64_t i = task * rows_per_task; i < std::min(problem.n_rows, (task + 1) * rows_per_task); ++i)
            to[i] = from[entry_of[i] - own.first_row];
    });
}

// assign() of problems by their entries, `own`; what is asked of each row comes from its entry.
void assign_rows_of(Entries &entries, const PgkmProblem *problems, const PgkmProblem *own, std::int64_t n_problems,
                    const PgkmAssignment *wanted)
{
    Budget &budget = entries.data.context.budget;
    std::vector<PgkmAssignment> found(wanted, wanted + n_problems);
    std::vector<Buffer<std::int32_t>> labels;
    std::vector<Buffer<double>> distances;
    for (std::int64_t p = 0; p < n_problems; ++p) {
        found[p].labels = labels.emplace_back(budget, wanted[p].labels == nullptr ? 0 : own[p].n_rows).data();
        found[p].distances = distances.emplace_back(budget, wanted[p].distances == nullptr ? 0 : own[p].n_rows).data();
    }
    assign(entries.data, own, n_problems, found.data());
    for (std::int64_t p = 0; p < n_problems; ++p) {
        if (wanted[p].labels != nullptr)
            spread(entries, problems[p], own[p], found[p].labels, wanted[p].labels);
        if (wanted[p].distances != nullptr)
            spread(entries, problems[p], own[p], found[p].distances, wanted[p].distances);
    }
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
            assign_rows_of(*data.entries, problems, own, n_problems, assignments);
    });
}

bool seed_of(Entries &entries, PgkmProblem &problem, const PgkmSeedParams &params)
{
    return run_of(entries, &problem, 1, false, [&](Data &on, PgkmProblem *own) { seed(on, own, 1, &params); });
}

bool fit_of(Entries &entries, PgkmProblem &problem, const PgkmFitParams &params)
{
    return run_of(entries, &problem, 1, true, [&](Data &on, PgkmProblem *own) { fit(on, own, 1, &params); });
}

bool assign_of(Entries &entries, const PgkmProblem &problem, PgkmAssignment &wanted)
{
    return run_of(entries, &problem, 1, false, [&](Data &on, const PgkmProblem *own) { assign(on, own, 1, &wanted); });
}

} // namespace pgkm::cpu
