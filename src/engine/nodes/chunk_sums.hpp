// chunk_sums.hpp - float64 sums over chunks of rows, with the bits of all rows at once.
//
// Such sums go by blocks of rows, in segments whose order is fixed (numeric/reduction.hpp). So what a chunk has beyond
// whole blocks waits for the next chunk. Only the CPU backend sums so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/operations.hpp"
#include "engine/backends/session.hpp"
#include "engine/nodes/fields.hpp"
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

// The answer to one request, moments or em_step, of n rows.
class ChunkSums {
  public:
    // request stays the caller's.
    ChunkSums(Session &session, std::int64_t n, const Bytes &request) : session_(session), n_(n), request_(request) {}

    void add(const PgkmPoints &chunk);
    // Once all chunks are there, of which one had rows.
    Writer finish();

  private:
    void begin(const PgkmPoints &rows);
    void add_piece(std::int64_t first, const PgkmPoints &piece);

    Session &session_;
    const std::int64_t n_;
    const Bytes &request_;
    RowBlocks blocks_;
    std::unique_ptr<AskedCall> asked_; // from the first piece on
    bool is_mixture_ = false;          // em_step is asked for, else cross
    std::optional<cpu::RowSums> sums_;
    cpu::Context *context_ = nullptr; // the session's
    std::int32_t d_ = 0;
    bool weighted_ = false;
};

} // namespace pgkm::nodes
