// gathered.hpp - entries of rows that come chunk by chunk and do not stay.
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/entries/entries.hpp"

namespace pgkm::cpu {

class GatheredEntries {
  public:
    // like: element, d, and whether there are weights.
    GatheredEntries(Context &context, const PgkmPoints &like);
    GatheredEntries(const GatheredEntries &) = delete;

    // Takes the rows of a chunk. False where too many rows differ, or memory is short: then it is of no use any more.
    bool add(const PgkmPoints &chunk);
    // The entries of all rows it was given; NULL where memory is short. It gives up what it holds.
    std::shared_ptr<Entries> take();

  private:
    void add_rows(const Data &rows);
    void make_room();

    std::int64_t seen_ = 0, room_ = 0; // rows, and how many may differ
    Buffer<std::byte> values_;         // of those that differ
    Buffer<double> weights_;
    Data kept_; // the same, which `keys_` and the one table of `differ_` refer to
    RowKeys keys_;
    DistinctTables differ_;
};

} // namespace pgkm::cpu
