#include "engine/tridiagonal.hpp"

#include <algorithm>
#include <cmath>

#include "backend/cpu/vector_kernels.hpp"

namespace pgkm {
namespace {

// Of a matrix of about 1, what lies beside the diagonal counts as 0 below the root of this: its squares would
// leave the range of float64.
constexpr double least_square = 1e-280;

constexpr std::int64_t panel = 32; // columns that are reduced before the rest is brought up to date
constexpr std::int64_t batch = 48; // reflections that are applied at once

const cpu::VectorKernels &vector_kernels()
{
    static const cpu::VectorKernels &kernels = cpu::vector_kernels(cpu::best_instruction_set());
    return kernels;
}

class Reduction {
public:
    Reduction(const MatrixWork &work, double *matrix, std::int64_t n)
        : work_(work), a_(matrix), n_(n), pairs_(size(2 * panel * n)), turned_(pairs_.size()),
          parts_(size(most_parts * n))
    {
        result_.diagonal.resize(size(n));
        result_.beside.resize(size(n));
        result_.factors.resize(size(n));
    }

    Tridiagonal run()
    {
        for (std::int64_t start = 0; start < n_; start += panel) {
            const std::int64_t end = std::min(n_, start + panel);
            std::fill(pairs_.begin(), pairs_.end(), 0.0);
            for (std::int64_t k = start; k < end; ++k) {
                work_.poll();
                reduce(k, k - start);
            }
            update_rest(end);
        }
        return std::move(result_);
    }

private:
    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    double *row(std::int64_t i) { return a_ + i * n_; }
    // The panel's reflections v, and w with A - v w' - w v' the reflected matrix; zero up to their column.
    double *v(std::int64_t p) { return pairs_.data() + p * n_; }
    double *w(std::int64_t p) { return pairs_.data() + (panel + p) * n_; }

    void reduce(std::int64_t k, std::int64_t p)
    {
        for (std::int64_t q = 0; q < p; ++q)
            kernels_.subtract_two(row(k) + k, v(q)[k], w(q) + k, w(q)[k], v(q) + k, n_ - k);
        result_.diagonal[size(k)] = row(k)[k];
        const std::int64_t rest = n_ - k - 1;
        if (rest == 0)
            return;
        double *const x = row(k) + k + 1;
        const double tail = kernels_.dot(x + 1, x + 1, rest - 1);
        result_.beside[size(k)] = x[0];
        if (tail < least_square)
            return; // no reflection
        const double length = std::sqrt(x[0] * x[0] + tail);
        const double beside = x[0] > 0.0 ? -length : length;
        result_.beside[size(k)] = beside;
        x[0] -= beside;
        const double factor = 2.0 / (x[0] * x[0] + tail);
        result_.factors[size(k)] = factor;
        std::copy_n(x, rest, v(p) + k + 1);
        // The product with the matrix as it would be, were it up to date.
        double *const y = w(p) + k + 1;
        multiply(k + 1, x, y);
        for (std::int64_t q = 0; q < p; ++q)
            kernels_.subtract_two(y, kernels_.dot(w(q) + k + 1, x, rest), v(q) + k + 1,
                                  kernels_.dot(v(q) + k + 1, x, rest), w(q) + k + 1, rest);
        for (std::int64_t i = 0; i < rest; ++i)
            y[i] *= factor;
        kernels_.add(y, -0.5 * factor * kernels_.dot(y, x, rest), x, rest);
    }

    // y = A x for the rows and columns from `first` on. Tasks have about the same number of elements,
    // as many as the size alone decides, and sums of their own.
    void multiply(std::int64_t first, const double *x, double *y)
    {
        constexpr std::int64_t elements_per_task = 32768;
        const std::int64_t rest = n_ - first;
        const std::int64_t tasks = std::clamp<std::int64_t>(rest * rest / 2 / elements_per_task, 1, most_parts);
        const auto begin = [&](std::int64_t task) {
            const double left = std::sqrt(1.0 - static_cast<double>(task) / static_cast<double>(tasks));
            return task == tasks ? rest : static_cast<std::int64_t>(static_cast<double>(rest) * (1.0 - left)) / 4 * 4;
        };
        work_.run(tasks, [&](std::int64_t task) {
            double *const own = task == 0 ? y : parts_.data() + task * n_;
            std::fill(own + begin(task), own + rest, 0.0);
            for (std::int64_t i = begin(task); i < begin(task + 1); i += 4)
                multiply_rows(first, i, std::min<std::int64_t>(4, begin(task + 1) - i), x, own);
        });
        for (std::int64_t task = 1; task < tasks; ++task)
            kernels_.add(y + begin(task), 1.0, parts_.data() + task * n_ + begin(task), rest - begin(task));
    }

    // Rows i to i + count - 1, counted from `first`.
    void multiply_rows(std::int64_t first, std::int64_t i, std::int64_t count, const double *x, double *y)
    {
        const double *const rows = row(first + i) + first;
        for (std::int64_t r = i; r < i + count; ++r) {
            const double *const values = rows + (r - i) * n_;
            y[r] += values[r] * x[r];
            for (std::int64_t c = r + 1; c < i + count; ++c) {
                y[r] += values[c] * x[c];
                y[c] += values[c] * x[r];
            }
        }
        const std::int64_t right = i + count, rest = n_ - first;
        if (right == rest)
            return; // the last rows, perhaps fewer than four
        double products[4];
        work_.kernels.symmetric_rows(rows + right, n_, rest - right, x + right, x + i, y + right, products);
        for (int r = 0; r < 4; ++r)
            y[i + r] += products[r];
    }

    // A -= V W' + W V' = [V W] [W V]' for the rows and columns from `end` on.
    void update_rest(std::int64_t end)
    {
        const std::int64_t rest = n_ - end, half = panel * n_;
        if (rest == 0)
            return;
        std::copy_n(pairs_.begin(), half, turned_.begin() + half);
        std::copy_n(pairs_.begin() + half, half, turned_.begin());
        add_product(work_, -1.0, {pairs_.data() + end, rest, 2 * panel, 1, n_},
                    {turned_.data() + end, 2 * panel, rest, n_, 1}, row(end) + end, n_, Part::upper);
    }

    static constexpr std::int64_t most_parts = 16;

    const MatrixWork &work_;
    const cpu::VectorKernels &kernels_ = vector_kernels();
    double *const a_;
    const std::int64_t n_;
    std::vector<double> pairs_, turned_, parts_;
    Tridiagonal result_;
};

// The triangular T of the reflections v_0 ... with 1 - V T V' their product, by rows.
void triangular_factor(const double *v, std::int64_t count, std::int64_t n, const double *factors, double *t)
{
    std::fill(t, t + batch * batch, 0.0);
    for (std::int64_t p = 0; p < count; ++p) {
        double products[batch];
        for (std::int64_t q = 0; q < p; ++q)
            products[q] = vector_kernels().dot(v + q * n, v + p * n, n);
        for (std::int64_t r = 0; r < p; ++r) {
            double sum = 0.0;
            for (std::int64_t q = r; q < p; ++q)
                sum += t[r * batch + q] * products[q];
            t[r * batch + p] = -factors[p] * sum;
        }
        t[p * batch + p] = factors[p];
    }
}

} // namespace

Tridiagonal tridiagonalise(const MatrixWork &work, double *matrix, std::int64_t n)
{
    return Reduction(work, matrix, n).run();
}

void apply_reflections(const MatrixWork &work, const double *matrix, const Tridiagonal &reduced, double *rows,
                       std::int64_t n_rows, std::int64_t n)
{
    std::vector<double> v(static_cast<std::size_t>(batch * n)), t(batch * batch);
    std::vector<double> products(static_cast<std::size_t>(n_rows * batch)), turned(products.size());
    for (std::int64_t first = (n - 1) / batch * batch; first >= 0; first -= batch) {
        work.poll();
        // Reflections of this batch change nothing up to column `first`.
        const std::int64_t count = std::min(batch, n - first), from = first + 1, rest = n - from;
        if (rest == 0)
            continue;
        std::fill(v.begin(), v.end(), 0.0);
        for (std::int64_t p = 0; p < count; ++p)
            if (reduced.factors[static_cast<std::size_t>(first + p)] != 0.0)
                std::copy_n(matrix + (first + p) * n + from + p, rest - p, v.data() + p * rest + p);
        triangular_factor(v.data(), count, rest, reduced.factors.data() + first, t.data());
        std::fill(products.begin(), products.end(), 0.0);
        std::fill(turned.begin(), turned.end(), 0.0);
        add_product(work, 1.0, {rows + from, n_rows, rest, n, 1}, {v.data(), rest, count, 1, rest}, products.data(),
                    batch);
        add_product(work, 1.0, {products.data(), n_rows, count, batch, 1}, {t.data(), count, count, 1, batch},
                    turned.data(), batch);
        add_product(work, -1.0, {turned.data(), n_rows, count, batch, 1}, {v.data(), count, rest, rest, 1}, rows + from,
                    n);
    }
}

} // namespace pgkm
