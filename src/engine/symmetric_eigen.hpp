// symmetric_eigen.hpp - all eigenvalues and eigenvectors of a symmetric matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/platform.hpp"

namespace pgkm {

struct SymmetricEigen {
    std::vector<double> values;  // d, descending
    std::vector<double> vectors; // d x d, one a row, of unit length, in the order of the values
};

// `matrix` is d x d and finite; both triangles are given. Up to a hundred features or so by
// Eigen; beyond, Eigen's solver would run for seconds to minutes with no way to stop it, so there the
// same method (Householder's tridiagonalisation, implicit QR steps with Wilkinson's shift: Golub
// and Van Loan, Matrix Computations, 4th ed., 8.3) runs in steps over `threads` threads, with a
// poll() at least every few milliseconds, which may throw. The bits do not depend on the number
// of threads. Throws Error(PGKM_INTERNAL) should the iteration not converge.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int32_t d, int threads,
                               const std::function<void()> &poll);

// The two ways, for tests.
SymmetricEigen symmetric_eigen_at_once(const std::vector<double> &matrix, std::int32_t d);
SymmetricEigen symmetric_eigen_in_steps(std::vector<double> matrix, std::int32_t d, int threads,
                                        const std::function<void()> &poll);

} // namespace pgkm
