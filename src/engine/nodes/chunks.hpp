// chunks.hpp - rows that come chunk by chunk, asked as if each chunk were a server: a request is a pass over them.
//
// Nothing of a row lasts from one request to the next. What requests before have told is told to each chunk anew:
// its chosen rows, say, whose distances are found again.
#pragma once

#include <functional>
#include <initializer_list>

#include "engine/backends/session.hpp"
#include "engine/nodes/share.hpp"
#include "engine/nodes/stream.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Takes one answer.
using Merge = std::function<void(Reader &)>;

class Chunks {
  public:
    // shape: as the chunks'.
    Chunks(PgkmStream &source, const PgkmPoints &shape, const BackendChoice &choice, const PgkmOpen &open)
        : source_(source), shape_(shape), open_(open), session_(choice, open)
    {
        shape_.n = source.n;
    }

    // Merges the answers of all chunks in the order of their rows. Throws Error.
    void ask(const Writer &request, const Merge &merge);

    // The request that brings the chosen rows of all requests before.
    void set_chosen(const Writer &add)
    {
        add_ = add.bytes();
        gains_.clear();
    }

    // Whether the last iteration gave any row another label than the one before.
    bool labels_have_changed();

    std::int64_t n() const { return source_.n; }

  private:
    // What a pass needs: rows, those of drawn buckets in canonical order, or labels from one request to the next.
    enum class Kind { rows, drawn, labels };
    void pass(std::initializer_list<const Bytes *> before, const Bytes &request, const Merge &merge,
              Kind kind = Kind::rows);
    void seed(const Bytes &request, const Merge &merge, Kind kind = Kind::rows)
    {
        pass({&begin_, &add_, &weigh_, &gains_}, request, merge, kind);
    }
    void sum_up(const Bytes &request, const Merge &merge);
    template <typename Body>
    void for_chunks(Kind kind, Body &&body);
    Writer serve(const Bytes &asked, const PgkmPoints &chunk, ShareState &state);

    PgkmStream &source_;
    PgkmPoints shape_; // all rows, without their values
    const PgkmOpen open_;
    Session session_;
    // Requests that later ones build upon; empty: none.
    Bytes transform_, iteration_, iteration_before_, begin_, add_, weigh_, gains_;
};

} // namespace pgkm::nodes
