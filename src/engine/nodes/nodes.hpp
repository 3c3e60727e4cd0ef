// nodes.hpp - several servers as one backend: PgkmBackend for one problem, whose rows lie on all of them. Or rows that
// come chunk by chunk, as if each chunk were a server.
//
// Its functions ask each server for integers (message.hpp) and add these up: the same bits as one server that holds
// all rows. The data are all rows; those of load() are this server's. There is no call for several problems or for
// labels. Sums in float64, of PCA and mixtures, are added in the order of the servers. A mixture that has neither
// labels nor factors gives each row to the component of the nearest mean.
#pragma once

#include <memory>
#include <vector>

#include "engine/api.h"
#include "engine/backends/session.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// A session with the request's nodes; `choice` serves the rows of this server. Throws Error.
BackendChoice nodes_choice();
PgkmContext *open_nodes(const PgkmRequest &request, const BackendChoice &choice, const PgkmOpen &open);
// Bytes that its calls take where you call, beside what is found: with so many in the longest request and the longest
// answer. 0 without nodes.
double bytes_of_calls(const PgkmRequest &request, double asked, double answered);
// What Session::cpu() says of such a context.
std::shared_ptr<PgkmContext> cpu_of(PgkmContext *nodes);

// Brings the rows of all servers into the space of the distance (rows/prepare.hpp), from what they were at first.
void transform(PgkmData *data, const std::vector<double> &center, const std::vector<double> &scale, PgkmMetric metric);

// The spreads of LabelledRows (rows/cluster_sums.hpp) over the rows of all servers, labelled by the nearest of k
// centroids, about the means of the clusters. Added in the order of the servers.
std::vector<double> cluster_sums(PgkmData *data, const std::vector<double> &centroids, std::int32_t k,
                                 const std::vector<double> &means);

} // namespace pgkm::nodes
