// node_set.hpp - what holds the rows of one fit: asks all servers the same, or all chunks, and gathers the answers.
//
// This server may hold rows, too. They are a Share like those of the others. A thread serves them while the others
// work, so that a server that fails is noticed however long that takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api.h"
#include "engine/nodes/chunks.hpp"
#include "engine/nodes/share.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

class NodeSet {
  public:
    // The request's nodes and stream stay the caller's. The rows of this server, if there are any, and chunks are
    // served by the backend of `choice`.
    NodeSet(const PgkmRequest &request, const BackendChoice &choice, const PgkmOpen &open);

    // The rows of this server, which stay the caller's. Their element and d are those of all nodes.
    void load(const PgkmPoints &points);

    // Merges the answers of all that have rows, in the same order each time. Throws Error: PGKM_NODE_FAILED where a
    // node failed, PGKM_CANCELLED when all nodes have been told to stop.
    void ask(
        const Writer &request, const Merge &merge = [](Reader &) {});
    // merge(reply): of answers that are a Reply each.
    template <typename Reply, typename Body>
    void ask(const Writer &request, Body &&merge)
    {
        ask(request, [&](Reader &reply) { merge(reply.get<Reply>()); });
    }

    const PgkmPoints &points() const { return points_; } // of this server
    std::int64_t n() const;                              // of all servers, or chunks
    Chunks *chunks() { return chunks_ ? &*chunks_ : nullptr; }
    const PgkmOpen &open() const { return open_; }
    void report(const char *phase, std::int32_t iteration, double shift) const;

  private:
    PgkmOpen own_open();
    std::vector<Bytes> ask_servers(const Writer &request);
    void gather(std::vector<Bytes> &replies);
    void cancel();
    Bytes serve_own(const Writer &request);

    std::vector<const PgkmNode *> nodes_; // those with rows
    PgkmOpen open_;
    BackendChoice choice_;
    PgkmPoints points_ = {};
    std::optional<Session> session_;
    std::optional<Chunks> chunks_;
    std::atomic<bool> stop_{false}; // what is served here
    ShareState state_;
    mutable std::uint64_t bytes_moved_ = 0;
};

} // namespace pgkm::nodes
