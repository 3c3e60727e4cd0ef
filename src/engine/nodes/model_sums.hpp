// model_sums.hpp - sums in float64 over the rows of several servers, for PCA and mixtures: added in the order of the
// servers.
#pragma once

#include "backend/backend.h"
#include "engine/nodes/node_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// As PgkmBackend.moments and PgkmBackend.em_step do, over all rows. Throw Error.
void sum_cross(NodeSet &nodes, PgkmMoments &out);
void sum_mixture(NodeSet &nodes, const PgkmMixture &mixture, PgkmMixtureSums &out);

} // namespace pgkm::nodes
