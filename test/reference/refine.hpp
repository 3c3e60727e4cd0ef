// refine.hpp - the definition of option `refine`: what a run of k-means does after its iterations.
//
// Rounds r = 0 .. 99, as long as splits > 0; splits = ceil(k / 8) at the beginning:
// 1. The m = min(splits, n - k, clusters of several rows and of inertia above 0) clusters of the largest inertia (the
// first on
//    a tie) are split: c becomes c - o, and c + o is added behind all. o_f = sqrt(3 w / (s d)) u_f, where w is the
//    cluster's inertia, s its mass, u_f uniform on [-1, 1): draw(seed, restart, split, r, cluster d + f). Both are held
//    within the features' ranges and rounded to the rows' type. m = 0: the search ends.
// 2. At most 3 iterations, as fit() makes them.
// 3. Until k clusters are left, the pair of the least a b / (a + b) D (shares of the mass, squared distance) becomes
// one at its
//    mean, in the place of the later of the two. On a tie the pair of the lowest later one, then of the lowest earlier
//    one.
// 4. At most 5 iterations. The centroids are kept if their inertia is below that of the best. Unless it is so by a
//    thousandth, splits is halved, rounded down.
// If any were kept, the best are iterated as a fit is. n_iter counts all iterations. Nothing happens for k = 1 and k >=
// n.
#pragma once

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// `problem` as the reference's fit() left it; `data` are the points, loaded by the reference.
void reference_refine(PgkmData *data, const PgkmPoints &points, const PgkmSummary &summary, PgkmProblem &problem,
                      const PgkmSeedParams &seed, const PgkmFitParams &params);

} // namespace pgkm
