#include "engine/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Eigenvalues>

#include "backend/cpu/thread_pool.hpp"
#include "engine/error.hpp"
#include "engine/tridiagonal.hpp"

namespace pgkm {
namespace {

// Eigen needs some 10 ms for this many features.
constexpr std::int32_t largest_at_once = 128;

SymmetricEigen descending(const double *values, const double *vectors, std::int32_t d, const WantedVectors &wanted)
{
    std::vector<std::size_t> order(static_cast<std::size_t>(d));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return values[i] > values[j]; });
    SymmetricEigen sorted;
    for (const std::size_t i : order)
        sorted.values.push_back(values[i]);
    order.resize(static_cast<std::size_t>(wanted(sorted.values)));
    for (const std::size_t i : order) {
        const double *const vector = vectors + static_cast<std::ptrdiff_t>(i) * d;
        sorted.vectors.insert(sorted.vectors.end(), vector, vector + d);
    }
    return sorted;
}

SymmetricEigen solve(std::vector<double> matrix, std::int64_t d, int threads, const std::function<void()> &poll,
                     const WantedVectors &wanted)
{
    cpu::ThreadPool pool(threads);
    const MatrixWork work = {[&](std::int64_t tasks, const std::function<void(std::int64_t)> &body) {
                                 pool.run(tasks, [&](std::int64_t task, int) { body(task); });
                             },
                             poll, cpu::matrix_kernels(cpu::best_instruction_set())};
    const Tridiagonal reduced = tridiagonalise(work, matrix.data(), d);
    TridiagonalEigen found = tridiagonal_eigen(work, reduced.diagonal, reduced.beside, wanted);
    apply_reflections(work, matrix.data(), reduced, found.vectors.data(),
                      static_cast<std::int64_t>(found.vectors.size()) / d, d);
    return {std::move(found.values), std::move(found.vectors)};
}

} // namespace

std::int64_t all_vectors(const std::vector<double> &values)
{
    return static_cast<std::int64_t>(values.size());
}

SymmetricEigen symmetric_eigen_at_once(const std::vector<double> &matrix, std::int32_t d, const WantedVectors &wanted)
{
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::Map<const Eigen::MatrixXd>(matrix.data(), d, d));
    if (solver.info() != Eigen::Success)
        throw Error(PGKM_INTERNAL, "the eigenvalues of the covariance matrix did not converge");
    // Eigenvectors are the columns of a column-major matrix: the rows of a row-major one.
    return descending(solver.eigenvalues().data(), solver.eigenvectors().data(), d, wanted);
}

SymmetricEigen symmetric_eigen_in_steps(std::vector<double> matrix, std::int32_t d, int threads,
                                        const std::function<void()> &poll, const WantedVectors &wanted)
{
    // Scaled, so that no square leaves the range of float64.
    double largest = 0.0;
    for (auto row = matrix.begin(); row != matrix.end(); row += d) {
        poll();
        for (auto value = row; value != row + d; ++value)
            largest = std::max(largest, std::fabs(*value));
    }
    for (auto row = matrix.begin(); largest > 0.0 && row != matrix.end(); row += d) {
        poll();
        for (auto value = row; value != row + d; ++value)
            *value /= largest;
    }
    SymmetricEigen found = solve(std::move(matrix), d, threads, poll, wanted);
    for (double &value : found.values)
        value *= largest;
    return found;
}

SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int32_t d, int threads,
                               const std::function<void()> &poll, const WantedVectors &wanted)
{
    if (d <= largest_at_once)
        return symmetric_eigen_at_once(matrix, d, wanted);
    return symmetric_eigen_in_steps(std::move(matrix), d, threads, poll, wanted);
}

} // namespace pgkm
