// chunk_sums.hpp - float64 sums over chunks of rows, with the bits of all rows at once.
//
// Such sums go by blocks of rows, in segments whose order is fixed (numeric/reduction.hpp). So what a chunk has beyond
// whole blocks waits for the next chunk. Only the CPU backend sums so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpu/operations.hpp"
#include "engine/backends/session.hpp"
#include "engine/nodes/stream.hpp"
#include "engine/rows/prepare.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Cuts rows that come in chunks into pieces of whole blocks, but for the last one.
class RowBlocks {
  public:
    // The number of its first row, and the rows, which last as long as the call.
    using Body = std::function<void(std::int64_t, const PgkmPoints &)>;

    void add(const PgkmPoints &chunk, const Body &body);
    void finish(const Body &body);

  private:
    void keep(const PgkmPoints &rows);
    void give_kept(const Body &body);

    PgkmPoints shape_ = {}; // of a chunk
    std::vector<std::byte> values_;
    std::vector<double> weights_;
    std::int64_t kept_ = 0, given_ = 0; // rows
};

// The mean of some rows of a stream, as moments_of() finds it of rows in memory, in these units: a pass. Throws Error.
std::vector<double> mean_of_sample(PgkmStream &source, std::int32_t d, const Standardization &units,
                                   const PgkmHost &host);

// A call of moments or em_step, which stays the caller's.
class ChunkSums {
  public:
    // shape: of all rows, whose values are not there.
    ChunkSums(Session &session, const Call &call, const PgkmPoints &shape);

    void add(const PgkmPoints &chunk);
    // Once all chunks are there, of which one had rows: what the call finds.
    void finish();

  private:
    bool is_mixture() const { return call_.function == Function::em_step; }
    bool wants_sums() const { return call_.sums->masses != nullptr; }
    void add_piece(std::int64_t first, const PgkmPoints &piece);

    Session &session_;
    cpu::Context &context_; // the session's
    const PgkmPoints shape_;
    const Call &call_;
    cpu::RowSums sums_;
    RowBlocks blocks_;
};

} // namespace pgkm::nodes
