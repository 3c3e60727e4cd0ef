// symmetric_eigen.hpp - all eigenvalues and the leading eigenvectors of a symmetric matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/platform.hpp"
#include "engine/tridiagonal_eigen.hpp"

namespace pgkm {

struct SymmetricEigen {
    std::vector<double> values;  // d, descending
    std::vector<double> vectors; // as many as wanted, d each, of unit length, in the order of the values
};

std::int64_t all_vectors(const std::vector<double> &values);

// `matrix` is d x d and finite; both triangles are given. `wanted` sees the values (from larger matrices
// scaled, in proportion) and says how many vectors to make: fewer take less time. Up to a hundred
// features or so by Eigen; beyond, Eigen's solver would run for seconds to minutes with no way to stop
// it, so there a blocked tridiagonalisation (tridiagonal.hpp), divide and conquer
// (tridiagonal_eigen.hpp) and blocked reflections run over `threads` threads, with a poll() at least
// every few milliseconds, which may throw and may come from any of the threads. The bits do not depend
// on the number of threads. Throws Error(PGKM_INTERNAL) should an iteration not converge.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int32_t d, int threads,
                               const std::function<void()> &poll, const WantedVectors &wanted = all_vectors);

// The two ways, for tests.
SymmetricEigen symmetric_eigen_at_once(const std::vector<double> &matrix, std::int32_t d,
                                       const WantedVectors &wanted = all_vectors);
SymmetricEigen symmetric_eigen_in_steps(std::vector<double> matrix, std::int32_t d, int threads,
                                        const std::function<void()> &poll, const WantedVectors &wanted = all_vectors);

} // namespace pgkm
