// symmetric_eigen.cpp - eigenvectors by LAPACK or Eigen.
#include "engine/pca/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <Eigen/Eigenvalues>

#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "engine/job/unstoppable.hpp"

namespace pgkm {
namespace {

// Eigen needs some 10 ms for this many features, and LAPACK less for more.
constexpr std::int32_t most_at_once = 192;

[[noreturn]] void fail_to_converge()
{
    throw Error(PGKM_INTERNAL, "the eigenvalues of the covariance matrix did not converge");
}

// The values in descending order, equal ones as they come, and whose vectors are wanted.
struct Leading {
    std::vector<double> values;
    std::vector<std::int64_t> columns;
};

Leading leading_of(const double *values, std::int32_t d, const WantedVectors &wanted)
{
    Leading leading;
    leading.columns.resize(at(d));
    std::iota(leading.columns.begin(), leading.columns.end(), std::int64_t{0});
    std::stable_sort(leading.columns.begin(), leading.columns.end(),
                     [&](std::int64_t i, std::int64_t j) { return values[i] > values[j]; });
    for (const std::int64_t i : leading.columns)
        leading.values.push_back(values[i]);
    leading.columns.resize(at(wanted(leading.values)));
    return leading;
}

// Eigenvectors are the columns of a column-major matrix: the rows of a row-major one.
SymmetricEigen pick(Leading &&leading, const double *vectors, std::int32_t d)
{
    SymmetricEigen picked = {std::move(leading.values), {}};
    picked.vectors.reserve(leading.columns.size() * at(d));
    for (const std::int64_t i : leading.columns)
        picked.vectors.insert(picked.vectors.end(), vectors + i * d, vectors + (i + 1) * d);
    return picked;
}

// A power of two by which the largest element comes just under 1, so that no square leaves the range of float64.
double scale_of(const std::vector<double> &matrix)
{
    double largest = 0.0;
    for (const double value : matrix)
        largest = std::max(largest, std::fabs(value));
    int exponent = 0;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

// The matrix becomes tridiagonal, divide and conquer solves that, and the wanted vectors are turned back.
class ByLapack {
  public:
    ByLapack(const Lapack &library, std::vector<double> matrix, std::int32_t d)
        : library_(library), matrix_(std::move(matrix)), n_(d), size_(1 + n_ * (n_ + 4)), values_(at(n_)),
          beside_(at(n_)), factors_(at(n_)), vectors_(at(n_) * at(n_)), work_(at(size_))
    {
        if (library.set_threads != nullptr)
            library.set_threads(1);
    }

    SymmetricEigen solve(const Poll &poll, const WantedVectors &wanted)
    {
        const double scale = scale_of(matrix_);
        for (double &value : matrix_)
            value *= scale;
        tridiagonalise();
        poll();
        conquer();
        poll();
        for (double &value : values_)
            value /= scale;
        Leading leading = leading_of(values_.data(), n_, wanted);
        turn_back(leading.columns);
        std::vector<double>().swap(work_);
        return pick(std::move(leading), vectors_.data(), n_);
    }

  private:
    void tridiagonalise()
    {
        int info = 0;
        library_.dsytrd("L", &n_, matrix_.data(), &n_, values_.data(), beside_.data(), factors_.data(), work_.data(),
                        &size_, &info, 1);
    }

    void conquer()
    {
        int info = 0, integers_size = 3 + 5 * n_;
        std::vector<int> integers(at(integers_size));
        library_.dstedc("I", &n_, values_.data(), beside_.data(), vectors_.data(), &n_, work_.data(), &size_,
                        integers.data(), &integers_size, &info, 1);
        if (info != 0)
            fail_to_converge();
    }

    // They are the last columns, but for equal values where some of them are wanted.
    void turn_back(const std::vector<std::int64_t> &wanted)
    {
        if (wanted.empty())
            return;
        const std::int64_t first = *std::min_element(wanted.begin(), wanted.end());
        const int columns = n_ - static_cast<int>(first);
        int info = 0;
        library_.dormtr("L", "L", "N", &n_, &columns, matrix_.data(), &n_, factors_.data(),
                        vectors_.data() + first * n_, &n_, work_.data(), &size_, &info, 1, 1, 1);
    }

    const Lapack &library_;
    std::vector<double> matrix_;
    const int n_, size_;
    std::vector<double> values_, beside_, factors_, vectors_, work_;
};

} // namespace

SymmetricEigen eigen_by_eigen(const std::vector<double> &matrix, std::int32_t d, const WantedVectors &wanted)
{
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::Map<const Eigen::MatrixXd>(matrix.data(), d, d));
    if (solver.info() != Eigen::Success)
        fail_to_converge();
    return pick(leading_of(solver.eigenvalues().data(), d, wanted), solver.eigenvectors().data(), d);
}

SymmetricEigen eigen_by_lapack(const Lapack &library, std::vector<double> matrix, std::int32_t d, const Poll &poll,
                               const WantedVectors &wanted)
{
    return ByLapack(library, std::move(matrix), d).solve(poll, wanted);
}

SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int32_t d, const Poll &poll,
                               const WantedVectors &wanted)
{
    if (d <= most_at_once)
        return eigen_by_eigen(matrix, d, wanted);
    const Lapack *const library = lapack();
    const auto owned = std::make_shared<std::vector<double>>(std::move(matrix));
    const auto found = std::make_shared<SymmetricEigen>();
    const auto solve = [=](const Poll &left) {
        *found = library == nullptr ? eigen_by_eigen(*owned, d, wanted)
                                    : eigen_by_lapack(*library, std::move(*owned), d, left, wanted);
    };
    run_unstoppable(static_cast<std::uint64_t>(symmetric_eigen_bytes(d)), solve, poll);
    return std::move(*found);
}

double symmetric_eigen_bytes(std::int32_t d)
{
    // The matrix, its vectors and either what LAPACK works in or the vectors in their order; OpenBLAS's own buffer.
    const double n = d, buffer = d <= most_at_once ? 0.0 : 32.0 * 1024.0 * 1024.0;
    return 8.0 * (3.0 * n * n + 30.0 * n) + buffer;
}

} // namespace pgkm
