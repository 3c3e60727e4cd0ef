#include "engine/tridiagonal_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Eigenvalues>

#include "engine/error.hpp"
#include "engine/rank_one.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t largest_leaf = 32;
// Parts up to this size are put together by one thread each, larger ones by all threads in turn.
constexpr std::int64_t largest_alone = 256;

class DivideAndConquer {
public:
    DivideAndConquer(const MatrixWork &work, const std::vector<double> &diagonal, const std::vector<double> &beside)
        : work_(work), n_(static_cast<std::int64_t>(diagonal.size())), beside_(beside)
    {
        state_.n = n_;
        state_.values = diagonal;
        state_.order.resize(size(n_));
        // As large as the matrix: to have them zero takes time.
        for (std::vector<double> *matrix : {&state_.vectors, &state_.rows, &state_.parts}) {
            work_.poll();
            matrix->resize(size(n_ * n_));
        }
        while (n_ > largest_leaf * leaves_)
            leaves_ *= 2;
    }

    TridiagonalEigen run(const WantedVectors &wanted)
    {
        // Where the matrix is cut, the two ends lose what the correction of rank one gives back.
        for (std::int64_t leaf = 1; leaf < leaves_; ++leaf) {
            const double coupling = std::fabs(beside_[size(begin(leaf) - 1)]);
            state_.values[size(begin(leaf) - 1)] -= coupling;
            state_.values[size(begin(leaf))] -= coupling;
        }
        work_.run(leaves_, [&](std::int64_t leaf) { solve_leaf(begin(leaf), begin(leaf + 1)); });
        for (std::int64_t width = 2; width < leaves_; width *= 2)
            merge_level(width);
        return finish(wanted);
    }

private:
    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    std::int64_t begin(std::int64_t leaf) const { return n_ * leaf / leaves_; }

    void solve_leaf(std::int64_t first, std::int64_t last)
    {
        work_.poll();
        const std::int64_t n = last - first;
        const Eigen::Map<const Eigen::VectorXd> diagonal(state_.values.data() + first, n);
        const Eigen::Map<const Eigen::VectorXd> beside(beside_.data() + first, n - 1);
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
        solver.computeFromTridiagonal(diagonal, beside);
        if (solver.info() != Eigen::Success)
            throw Error(PGKM_INTERNAL, "the eigenvalues of the covariance matrix did not converge");
        for (std::int64_t j = 0; j < n; ++j) {
            state_.order[size(first + j)] = first + j; // Eigen's values ascend
            for (std::int64_t i = 0; i < n; ++i)
                state_.row(first + j)[first + i] = solver.eigenvectors()(i, j);
        }
        for (std::int64_t j = 0; j < n; ++j)
            state_.values[size(first + j)] = solver.eigenvalues()(j);
    }

    Coupling coupling(std::int64_t first_leaf, std::int64_t width) const
    {
        const std::int64_t middle = begin(first_leaf + width / 2);
        return {begin(first_leaf), middle, begin(first_leaf + width), beside_[size(middle - 1)]};
    }

    void merge_level(std::int64_t width)
    {
        const MatrixWork alone = {[](std::int64_t tasks, const std::function<void(std::int64_t)> &body) {
                                      for (std::int64_t task = 0; task < tasks; ++task)
                                          body(task);
                                  },
                                  work_.poll, work_.kernels};
        const std::int64_t parts = leaves_ / width;
        if (n_ / parts <= largest_alone)
            return work_.run(parts, [&](std::int64_t part) { merge(alone, state_, coupling(part * width, width)); });
        for (std::int64_t part = 0; part < parts; ++part)
            merge(work_, state_, coupling(part * width, width));
    }

    // The last merge makes only the vectors that are wanted.
    TridiagonalEigen finish(const WantedVectors &wanted)
    {
        const auto descending = [&] {
            std::vector<double> values;
            for (std::int64_t i = n_ - 1; i >= 0; --i)
                values.push_back(state_.values[size(state_.order[size(i)])]);
            return values;
        };
        TridiagonalEigen result;
        std::int64_t count = 0;
        const auto choose = [&] {
            result.values = descending();
            return count = wanted(result.values);
        };
        if (leaves_ > 1)
            merge(work_, state_, coupling(0, leaves_), choose);
        else
            choose();
        state_.parts = {};
        result.vectors.reserve(size(count * n_));
        for (std::int64_t i = n_ - 1; i >= n_ - count; --i) {
            work_.poll();
            const double *const row = state_.row(state_.order[size(i)]);
            result.vectors.insert(result.vectors.end(), row, row + n_);
        }
        return result;
    }

    const MatrixWork &work_;
    const std::int64_t n_;
    const std::vector<double> &beside_;
    std::int64_t leaves_ = 1;
    PartialEigen state_ = {};
};

} // namespace

TridiagonalEigen tridiagonal_eigen(const MatrixWork &work, const std::vector<double> &diagonal,
                                   const std::vector<double> &beside, const WantedVectors &wanted)
{
    return DivideAndConquer(work, diagonal, beside).run(wanted);
}

} // namespace pgkm
