// symmetric_eigen.hpp - all eigenvalues and the leading eigenvectors of a symmetric matrix.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/pca/lapack.hpp"
#include "numeric/platform.hpp"
#include "engine/job/poll.hpp"

namespace pgkm {

struct SymmetricEigen {
    std::vector<double> values;  // d, descending
    std::vector<double> vectors; // as many as wanted, d each, of unit length, in the order of the values
};

// How many of the leading eigenvectors are wanted, given all eigenvalues in descending order.
using WantedVectors = std::function<std::int64_t(const std::vector<double> &values)>;

// LAPACK counts in 32 bits, and its workspace is the square of (d + 2).
inline constexpr std::int32_t most_eigen_features = 46338;

// `matrix` is d x d and finite; both triangles are given. Up to some hundred features this is Eigen's solver, in
// the caller's thread. Beyond, LAPACK's or, where there is none, Eigen's runs in a thread that is left behind
// when poll() throws (unstoppable.hpp), so `wanted` owns what it uses. The bits depend on the library alone.
// Throws Error(PGKM_INTERNAL) should an iteration not converge.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int32_t d, const Poll &poll,
                               const WantedVectors &wanted);

// Bytes that it needs, the matrix among them.
double symmetric_eigen_bytes(std::int32_t d);

// The two ways. LAPACK's polls some times in all, between its three steps.
SymmetricEigen eigen_by_eigen(const std::vector<double> &matrix, std::int32_t d, const WantedVectors &wanted);
SymmetricEigen eigen_by_lapack(const Lapack &library, std::vector<double> matrix, std::int32_t d, const Poll &poll,
                               const WantedVectors &wanted);

} // namespace pgkm
