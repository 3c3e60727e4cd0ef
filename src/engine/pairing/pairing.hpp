// pairing.hpp - the assignment problem: rows and columns of a matrix of costs, paired one to one at the least total.
//
// Rows of the shorter side are added one by one, each along a cheapest path of changes (Jonker, Volgenant 1987, without
// their heuristics): O(s^2 l) steps for a shorter side s and a longer one l. Costs and prices are integers of 128 bits,
// the costs scaled by one power of two. So they are exact, down to 2^-100 of the greatest, and ties are ties.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/calculations.h"

namespace pgkm {

// The partner of each row, or -1. costs: rows x columns, finite. All of the shorter side have a partner.
std::vector<std::int32_t> cheapest_pairing(const double *costs, std::int32_t rows, std::int32_t columns,
                                           PgkmInterrupted interrupted);

// The same, and of all pairings of the least total the one whose list of partners comes first; none counts as the last.
std::vector<std::int32_t> first_cheapest_pairing(const double *costs, std::int32_t rows, std::int32_t columns,
                                                 PgkmInterrupted interrupted);

} // namespace pgkm
