// entries.hpp - seed(), fit() and assign() over the rows that differ, where rows repeat.
//
// An entry is a row with the number of rows that equal it, in values and weight. What a row adds to a sum is rounded
// first and multiplied then, so that entries give the bits of their rows. Equal rows get equal labels.
//
// Entries are made by the first seeding or fit that is worth it, over all loaded rows, if a sample says that they are
// few. They stay beside the rows for later calls, assignments among them. Where problems share the rows, each has
// entries of its own, which follow one another. Calls over other parts of the rows, and all other calls, go to the
// rows.
#pragma once

#include <memory>
#include <vector>

#include "backend/entries.hpp"
#include "cpu/context.hpp"
#include "cpu/entries/distinct.hpp"

namespace pgkm::cpu {

// The most copies of an entry; rows with more have several entries. Where 64 bits hold sums of rows:
//   * cluster_sums, and `within` of assign.cpp, are emptied before 2^17 copies of 45 or 46 bits: an entry has at most
//     2^17.
//   * Buckets of masses.hpp, and the gains of few_rows.hpp, have at most 256 entries, whose masses are below 2^46:
//     256 x 2^10 x 2^46 = 2^64. This is the limit. Smaller buckets would allow more copies.
//   * A place of `random` is one of all copies, in 64 bits. Gains of trials.hpp, masses_by_label() and totals have 128.
inline constexpr std::int64_t most_copies = 1 << 10;

// Of fewer rows nothing is long.
inline constexpr std::int64_t least_rows_of_entries = 1 << 12;

struct Entries {
    // Of loaded rows, in groups: the row behind each.
    Entries(const Data &rows, const std::vector<std::int64_t> &group_ends);
    // Of n rows whose copies were not kept: those of each table, without entry_of. keys: of `rows`.
    Entries(const Data &rows, std::int64_t n, const RowKeys &keys, const DistinctTables &differ);

    Buffer<std::byte> values;
    Buffer<double> weights; // empty without
    Buffer<std::uint16_t> counts;
    Buffer<std::uint32_t> entry_of; // for each row one of those that equal it
    Data data;                      // the entries as loaded rows; none: too many rows differ
    // Of each group the row behind it, and the entry behind its entries.
    std::vector<std::int64_t> ends, entry_ends;

    std::int64_t size() const { return data.points.n; }
    // The same problem on entries: those of a group. None without rows: the problem's are no group.
    PgkmProblem problem_of(const PgkmProblem &problem) const;

  private:
    std::vector<Buffer<std::uint32_t>> take(const Data &rows, const RowKeys &keys, const DistinctTables &tables,
                                            std::int64_t most);
};

// As those of operations.hpp.
void seed_entries(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params);
void fit_entries(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params);
void assign_entries(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments);

// Entries of loaded rows, if a sample says that they are few; NULL where they are not, or memory is short.
std::shared_ptr<Entries> make_entries(const Data &rows, const std::vector<std::int64_t> &group_ends);

// The same calls for a problem whose rows are entries, not loaded; of an assignment no more than sums. False where
// memory is too short: the problem is as it was.
bool seed_of(Entries &entries, PgkmProblem &problem, const PgkmSeedParams &params);
bool fit_of(Entries &entries, PgkmProblem &problem, const PgkmFitParams &params);
bool assign_of(Entries &entries, const PgkmProblem &problem, PgkmAssignment &wanted);

} // namespace pgkm::cpu
