// secular.hpp - eigenvalues of a diagonal matrix plus one of rank one.
#pragma once

#include <cstdint>

#include "engine/platform.hpp"

namespace pgkm {

// Eigenvalue j, counted from the lowest, of diag(d) + rho z z', and all d[i] less the eigenvalue, each
// with small relative error. d ascends strictly, rho > 0, squares[i] = z[i]^2 > 0, n >= 1. The root of
//
//     f(x) = 1 / rho + sum of squares[i] / (d[i] - x)
//
// between d[j] and d[j + 1] (or above the last) is found from the nearer pole by steps that fit a pole
// on either side to value and slope (Bunch, Nielsen, Sorensen, "Rank-one modification of the symmetric
// eigenproblem", 1978), kept inside a bracket.
double secular_root(std::int64_t j, std::int64_t n, const double *d, const double *squares, double rho,
                    double *differences);

} // namespace pgkm
