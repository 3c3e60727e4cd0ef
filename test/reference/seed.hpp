// seed.hpp - the definition of seeding: which rows become the first centroids.
//
// Rows are first brought into canonical order (numeric/row_key.hpp): by key, then by content. So the first centroids
// depend on the multiset of rows, on the options and on the seed, and on nothing else; `first` is the exception.
//
// A draw takes masses, which are integers: the row drawn is the first in canonical order whose running sum passes
// floor(u * total / 2^64), u 64 random bits. For D^2 sampling v_i = w_i * m_i (m_i the squared distance of row i
// to the nearest centroid chosen so far), the largest v is scaled to just under 2^46, and every v_i is rounded down at
// that scale. Squares so small that all integers are 0 draw the last row.
#pragma once

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Sets problem.centroids, -0 turned into +0, and lowers problem.k to the number of distinct rows found.
//
// k-means++ (greedy): the first centroid is drawn by weight; each of the others is the best
// of greedy_trials(k) draws by the v_i, that is the one that leaves the smallest sum of min(v_i,
// w_i * D(x_i, draw)) in the same integers (the first on a tie). It ends early when every
// v_i is 0. Where centroids are kept, they stand for the first ones that were chosen.
// k-means||: from a first row as above, five rounds of l = 2k draws each, by the v_i at the round's beginning; a row
// whose content was drawn before in the round is not added again. The candidates, in the order of their draws, are
// weighted by the rows (or mass) nearest to them (the first on a tie), and weighted greedy k-means++ picks k of them;
// there the order of the candidates stands for the canonical one. With k candidates
// or fewer, all are centroids and greedy k-means++ on the rows goes on from there.
// random: Floyd's sampling of places in canonical order, without replacement. Where weights differ, as integers of at
// least 1, rows are drawn by these, in rounds of as many draws as rows are missing. Of draws of equal rows the first
// counts, and rows at distance 0 from those that are chosen are not drawn in later rounds. It ends early when there are
// no others. first: rows 0 .. k-1 as they come. Both give at most n_rows centroids.
template <typename T>
void reference_seed_problem(const PgkmPoints &points, PgkmProblem &problem, const PgkmSeedParams &params);

} // namespace pgkm
