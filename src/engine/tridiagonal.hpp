// tridiagonal.hpp - a symmetric matrix as Q T Q', T tridiagonal, Q a product of reflections.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/matrix_product.hpp"
#include "engine/platform.hpp"

namespace pgkm {

struct Tridiagonal {
    std::vector<double> diagonal; // n
    std::vector<double> beside;   // n; element i is beside diagonal i and i + 1, the last is unused
    std::vector<double> factors;  // n; Q = H_0 H_1 ..., H_k = 1 - factors[k] v v'; 0: no reflection
};

// `matrix` is n x n by rows; its upper triangle is read. Afterwards element (k, j), j > k, is v_j of
// H_k, where factors[k] is not 0; v is 0 up to k. Panels of columns are reduced with products by the
// untouched rest of the matrix, which is then brought up to date at once (Dongarra, Sorensen,
// Hammarling, "Block reduction of matrices to condensed forms", 1989).
Tridiagonal tridiagonalise(const MatrixWork &work, double *matrix, std::int64_t n);

// rows = rows Q': turns eigenvectors of T, one a row, into those of the matrix. Reflections are applied
// many at a time as 1 - V T V' (Schreiber, Van Loan, "A storage-efficient WY representation", 1989).
void apply_reflections(const MatrixWork &work, const double *matrix, const Tridiagonal &reduced, double *rows,
                       std::int64_t n_rows, std::int64_t n);

} // namespace pgkm
