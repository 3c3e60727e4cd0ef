#include "engine/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <Eigen/Eigenvalues>

#include "backend/cpu/thread_pool.hpp"
#include "backend/cpu/vector_kernels.hpp"
#include "engine/error.hpp"

namespace pgkm {
namespace {

// Eigen needs some 10 ms for this many features.
constexpr std::int32_t largest_at_once = 128;

// Eigenvectors are made in columns of this width, each by one thread: a strip stays in the
// second-level cache while all reflectors and rotations pass over it.
constexpr std::int64_t strip = 64;

struct Rotation {
    std::int32_t row; // and row + 1
    double c, s;
};

class Stepper {
public:
    Stepper(std::vector<double> &matrix, std::int32_t d, int threads, const std::function<void()> &poll)
        : a_(matrix), d_(d), poll_(poll), pool_(threads), kernels_(cpu::vector_kernels(cpu::best_instruction_set())),
          diagonal_(size(d)), beside_(size(d)), beta_(size(d)), vectors_(size(d) * size(d))
    {
    }

    SymmetricEigen run()
    {
        for (std::int32_t k = 0; k < d_; ++k) {
            poll_();
            reflect(k);
        }
        apply_reflectors();
        diagonalise();
        return {std::move(diagonal_), std::move(vectors_)};
    }

private:
    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    double *row(std::int64_t i) { return a_.data() + i * d_; }

    // Annihilates row k beyond the subdiagonal; the reflector stays in the row's place.
    void reflect(std::int32_t k)
    {
        diagonal_[size(k)] = row(k)[k];
        const std::int64_t rest = d_ - k - 1;
        if (rest == 0)
            return;
        double *const v = row(k) + k + 1;
        const double tail = kernels_.dot(v + 1, v + 1, rest - 1);
        beside_[size(k)] = v[0];
        if (tail == 0.0)
            return; // beta stays 0: no reflection
        const double length = std::sqrt(v[0] * v[0] + tail);
        beside_[size(k)] = v[0] > 0.0 ? -length : length;
        v[0] -= beside_[size(k)];
        beta_[size(k)] = 2.0 / (v[0] * v[0] + tail);
        update(k, v, rest);
    }

    // The rest of the matrix: A - v w' - w v', w = p - (beta / 2) (p' v) v, p = beta A v.
    void update(std::int32_t k, const double *v, std::int64_t rest)
    {
        std::vector<double> w(size(rest));
        for_rows(rest,
                 [&](std::int64_t i) { w[size(i)] = beta_[size(k)] * kernels_.dot(row(k + 1 + i) + k + 1, v, rest); });
        const double share = -0.5 * beta_[size(k)] * kernels_.dot(w.data(), v, rest);
        kernels_.add(w.data(), share, v, rest);
        for_rows(rest, [&](std::int64_t i) {
            kernels_.subtract_two(row(k + 1 + i) + k + 1, v[i], w.data(), w[size(i)], v, rest);
        });
    }

    template <typename Body>
    void for_rows(std::int64_t rows, Body &&body)
    {
        constexpr std::int64_t values_per_task = 1 << 15;
        const std::int64_t per_task = std::max<std::int64_t>(1, values_per_task / rows);
        pool_.run((rows + per_task - 1) / per_task, [&](std::int64_t task, int) {
            for (std::int64_t i = task * per_task; i < std::min(rows, (task + 1) * per_task); ++i)
                body(i);
        });
    }

    template <typename Body>
    void for_strips(Body &&body)
    {
        pool_.run((d_ + strip - 1) / strip, [&](std::int64_t task, int) {
            body(vectors_.data() + task * strip, std::min(strip, d_ - task * strip), task * strip);
        });
    }

    // vectors_ = the product of all reflectors, the first one innermost.
    void apply_reflectors()
    {
        for_strips([&](double *z, std::int64_t width, std::int64_t first) {
            for (std::int64_t i = 0; i < width; ++i)
                z[(first + i) * d_ + i] = 1.0;
            for (std::int32_t k = 0; k < d_; ++k) {
                poll_();
                if (beta_[size(k)] == 0.0)
                    continue;
                const double *const v = row(k) + k + 1;
                double u[strip] = {};
                for (std::int64_t i = 0; i < d_ - k - 1; ++i)
                    kernels_.add(u, v[i], z + (k + 1 + i) * d_, width);
                for (std::int64_t i = 0; i < d_ - k - 1; ++i)
                    kernels_.add(z + (k + 1 + i) * d_, -beta_[size(k)] * v[i], u, width);
            }
        });
    }

    void flush_rotations()
    {
        for_strips([&](double *z, std::int64_t width, std::int64_t) {
            for (std::size_t i = 0; i < rotations_.size(); ++i) {
                if (i % 4096 == 0)
                    poll_();
                const Rotation &turn = rotations_[i];
                kernels_.rotate(z + std::int64_t{turn.row} * d_, z + std::int64_t{turn.row + 1} * d_, turn.c, turn.s,
                                width);
            }
        });
        rotations_.clear();
    }

    // One implicit QR step on the unreduced block [start, end] of the tridiagonal matrix.
    void step(std::int32_t start, std::int32_t end)
    {
        double *const t = diagonal_.data(), *const e = beside_.data();
        const double half = (t[end - 1] - t[end]) / 2.0;
        const double root = std::hypot(half, e[end - 1]);
        const double shift = t[end] - e[end - 1] * (e[end - 1] / (half + (half < 0.0 ? -root : root)));
        double x = t[start] - shift, z = e[start];
        for (std::int32_t k = start; k < end && z != 0.0; ++k) {
            const double r = std::hypot(x, z), c = x / r, s = z / r;
            if (k > start)
                e[k - 1] = r;
            const double upper = t[k], lower = t[k + 1], cross = e[k];
            t[k] = c * c * upper + 2.0 * c * s * cross + s * s * lower;
            t[k + 1] = s * s * upper - 2.0 * c * s * cross + c * c * lower;
            e[k] = (c * c - s * s) * cross + c * s * (lower - upper);
            x = e[k];
            z = 0.0;
            if (k < end - 1) {
                z = s * e[k + 1];
                e[k + 1] *= c;
            }
            rotations_.push_back({k, c, s});
        }
    }

    bool negligible(std::int32_t i) const
    {
        const double near = std::fabs(diagonal_[size(i)]) + std::fabs(diagonal_[size(i + 1)]);
        return std::fabs(beside_[size(i)]) <= std::numeric_limits<double>::epsilon() * near;
    }

    void diagonalise()
    {
        constexpr std::size_t most_rotations = 1 << 17;
        std::int64_t steps = 0;
        std::int32_t end = d_ - 1;
        while (end > 0) {
            poll_();
            if (negligible(end - 1)) {
                beside_[size(--end)] = 0.0;
                continue;
            }
            std::int32_t start = end - 1;
            while (start > 0 && !negligible(start - 1))
                --start;
            if (start > 0)
                beside_[size(start - 1)] = 0.0;
            if (++steps > std::int64_t{40} * d_)
                throw Error(PGKM_INTERNAL, "the eigenvalues of the covariance matrix did not converge");
            step(start, end);
            if (rotations_.size() > most_rotations)
                flush_rotations();
        }
        flush_rotations();
    }

    std::vector<double> &a_;
    const std::int32_t d_;
    const std::function<void()> &poll_;
    cpu::ThreadPool pool_;
    const cpu::VectorKernels &kernels_;
    std::vector<double> diagonal_, beside_, beta_;
    std::vector<double> vectors_;
    std::vector<Rotation> rotations_;
};

SymmetricEigen descending(const SymmetricEigen &found, std::int32_t d)
{
    std::vector<std::size_t> order(static_cast<std::size_t>(d));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return found.values[i] > found.values[j]; });
    SymmetricEigen sorted;
    sorted.vectors.reserve(found.vectors.size());
    for (const std::size_t i : order) {
        sorted.values.push_back(found.values[i]);
        const auto vector = found.vectors.begin() + static_cast<std::ptrdiff_t>(i) * d;
        sorted.vectors.insert(sorted.vectors.end(), vector, vector + d);
    }
    return sorted;
}

} // namespace

SymmetricEigen symmetric_eigen_at_once(const std::vector<double> &matrix, std::int32_t d)
{
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::Map<const Eigen::MatrixXd>(matrix.data(), d, d));
    if (solver.info() != Eigen::Success)
        throw Error(PGKM_INTERNAL, "the eigenvalues of the covariance matrix did not converge");
    // Eigenvectors are the columns of a column-major matrix: the rows of a row-major one.
    const double *const values = solver.eigenvalues().data(), *const vectors = solver.eigenvectors().data();
    return descending({{values, values + d}, {vectors, vectors + std::int64_t{d} * d}}, d);
}

SymmetricEigen symmetric_eigen_in_steps(std::vector<double> matrix, std::int32_t d, int threads,
                                        const std::function<void()> &poll)
{
    // Scaled, so that no square leaves the range of float64.
    double largest = 0.0;
    for (const double value : matrix)
        largest = std::max(largest, std::fabs(value));
    if (largest > 0.0)
        for (double &value : matrix)
            value /= largest;
    SymmetricEigen found = descending(Stepper(matrix, d, threads, poll).run(), d);
    for (double &value : found.values)
        value *= largest;
    return found;
}

SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int32_t d, int threads,
                               const std::function<void()> &poll)
{
    if (d <= largest_at_once)
        return symmetric_eigen_at_once(matrix, d);
    return symmetric_eigen_in_steps(std::move(matrix), d, threads, poll);
}

} // namespace pgkm
