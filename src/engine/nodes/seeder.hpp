// seeder.hpp - chooses first centroids among the rows of several servers, by the rules of numeric/row_key.hpp and
// test/reference/seed.hpp: as if one server held them all.
//
// A draw asks for masses by bucket of keys, then for the keys of its bucket, then for the contents behind its key.
// All draws of a step travel together. What is chosen are contents: rows with numbers exist on their own server alone.
#pragma once

#include "backend/backend.h"
#include "engine/nodes/node_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Sets problem.centroids and lowers problem.k, as PgkmBackend.seed does. Throws Error.
template <typename T>
void seed(NodeSet &nodes, PgkmProblem &problem, const PgkmSeedParams &params);

} // namespace pgkm::nodes
