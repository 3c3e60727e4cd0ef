// cluster_sums.hpp - sums over the rows of clusters, in float64: what a node does for nodes::cluster_totals() and
// cluster_spreads().
#pragma once

#include "engine/backends/session.hpp"
#include "engine/nodes/message.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Answers one request about the rows that are loaded in the session. Throws Error.
template <typename T>
void serve_cluster_sums(Session &session, const PgkmPoints &points, int threads, const PgkmHost &host,
                        Operation operation, Reader &request, Writer &reply);

} // namespace pgkm::nodes
