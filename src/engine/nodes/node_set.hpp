// node_set.hpp - the servers that hold the rows of one fit: asks all of them the same, and gathers their answers.
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
#include "engine/backends/session.hpp"
#include "engine/nodes/message.hpp"
#include "engine/nodes/share.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

class NodeSet {
  public:
    // nodes stay the caller's. The rows of this server, if there are any, are served by the backend of `choice`.
    NodeSet(const PgkmNode *nodes, std::int64_t n_nodes, const BackendChoice &choice, const PgkmOpen &open);

    // The rows of this server, which stay the caller's. Their element and d are those of all nodes.
    void load(const PgkmPoints &points);

    // The answers of all that have rows, in the same order each time. Throws Error: PGKM_NODE_FAILED where a node
    // failed, PGKM_CANCELLED when all nodes have been told to stop.
    std::vector<Bytes> ask(const Writer &request);

    const PgkmPoints &points() const { return points_; } // of this server
    std::int64_t n() const;                              // of all servers
    const PgkmOpen &open() const { return open_; }
    void report(const char *phase, std::int32_t iteration, double shift) const;

  private:
    PgkmOpen own_open();
    void gather(std::vector<Bytes> &replies);
    void cancel();
    Bytes serve_own(const Writer &request);

    std::vector<const PgkmNode *> nodes_; // those with rows
    PgkmOpen open_;
    BackendChoice choice_;
    PgkmPoints points_ = {};
    std::optional<Session> session_;
    std::atomic<bool> stop_{false}; // what is served here
    ShareState state_;
    mutable std::uint64_t bytes_moved_ = 0;
};

} // namespace pgkm::nodes
