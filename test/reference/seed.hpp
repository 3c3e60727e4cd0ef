// seed.hpp - the definition of seeding: which rows become the first centroids.
//
// D^2 sampling works on integers: with v_i = w_i * m_i (m_i the squared distance of row i
// to the nearest centroid chosen so far), the largest v scaled to just under 2^46 and every
// v_i rounded down at that scale, a draw picks the first row whose running sum of these
// integers, in row order, passes floor(u * total / 2^64), u 64 random bits.
#pragma once

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Sets problem.centroids and lowers problem.k to the number of distinct rows found.
//
// k-means++ (greedy): the first centroid is drawn by weight; each of the others is the best
// of greedy_trials(k) draws, that is the one that leaves the smallest sum of min(v_i,
// w_i * D(x_i, draw)) in the same integers (the first on a tie). It ends early when every
// v_i is 0.
// k-means||: from a first row as above, five rounds add each row by itself with probability
// l * v_i / total, l = 2k; the candidates are weighted by the rows (or mass) nearest to them
// (lowest index on a tie), and weighted greedy k-means++ picks k of them. With k candidates
// or fewer, all are centroids and greedy k-means++ on the rows goes on from there.
// random: Floyd's sampling without replacement. first: rows 0 .. k-1. Both give at most
// n_rows centroids.
template <typename T>
void reference_seed_problem(const PgkmPoints &points, PgkmProblem &problem, const PgkmSeedParams &params);

} // namespace pgkm
