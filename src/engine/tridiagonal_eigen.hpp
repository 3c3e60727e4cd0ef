// tridiagonal_eigen.hpp - eigenvalues and eigenvectors of a symmetric tridiagonal matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/matrix_product.hpp"
#include "engine/platform.hpp"

namespace pgkm {

// How many of the leading eigenvectors are wanted, given all eigenvalues in descending order.
using WantedVectors = std::function<std::int64_t(const std::vector<double> &values)>;

struct TridiagonalEigen {
    std::vector<double> values;  // n, descending
    std::vector<double> vectors; // as many as wanted, one a row of n, of unit length
};

// `diagonal` has n elements, beside[i] lies beside diagonal elements i and i + 1. Divide and conquer:
// Cuppen, "A divide and conquer method for the symmetric tridiagonal eigenproblem" (1981), with
// vectors from recomputed z (Gu, Eisenstat, "A stable and efficient algorithm for the rank-one
// modification of the symmetric eigenproblem", 1994), which are orthogonal whatever the gaps. What
// deflates costs nothing; the rest are matrix products. Throws Error(PGKM_INTERNAL) should one of
// the smallest parts not converge.
TridiagonalEigen tridiagonal_eigen(const MatrixWork &work, const std::vector<double> &diagonal,
                                   const std::vector<double> &beside, const WantedVectors &wanted);

} // namespace pgkm
