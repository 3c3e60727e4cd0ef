// seeder.hpp - chooses first centroids among the rows of several servers, by the rules of numeric/row_key.hpp and
// test/reference/seed.hpp: as if one server held them all.
//
// What is chosen are contents: rows with numbers exist on their own server alone. A step of k-means++ takes three round
// trips: the contents of the draws' buckets; bounds of what each trial gains (and once more, exactly, where bounds do
// not tell the best); the choice, which brings the changes of the masses with it.
#pragma once

#include "backend/backend.h"
#include "engine/nodes/node_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Sets problem.centroids and lowers problem.k, as PgkmBackend.seed does. Throws Error.
template <typename T>
void seed(NodeSet &nodes, PgkmProblem &problem, const PgkmSeedParams &params);

// Bytes for that, beside what a server or chunk takes.
double bytes_of_draws(std::int64_t n, std::int64_t k, std::int32_t d);

} // namespace pgkm::nodes
