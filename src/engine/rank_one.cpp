#include "engine/rank_one.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/vector_kernels.hpp"
#include "engine/secular.hpp"

namespace pgkm {
namespace {

// Which columns of a row are not zero.
enum Support : std::int8_t { left, both, right };

// The matrix is V (D + rho z z') V' with the rows of V the vectors of both blocks.
class Merge {
public:
    Merge(const MatrixWork &work, PartialEigen &state, const Coupling &coupling)
        : work_(work), s_(state), c_(coupling), n_(coupling.last - coupling.first),
          rho_(2.0 * std::fabs(coupling.beside)), z_(size(n_)), support_(size(n_))
    {
        // Unit length: both ends are rows of orthogonal matrices.
        const double sign = coupling.beside < 0.0 ? -1.0 : 1.0, scale = std::sqrt(0.5);
        for (std::int64_t i = c_.first; i < c_.last; ++i) {
            const bool upper = i < c_.middle;
            z_[local(i)] = upper ? scale * s_.row(i)[c_.middle - 1] : sign * scale * s_.row(i)[c_.middle];
            support_[local(i)] = upper ? left : right;
        }
        std::inplace_merge(s_.order.begin() + c_.first, s_.order.begin() + c_.middle, s_.order.begin() + c_.last,
                           [&](std::int64_t a, std::int64_t b) { return s_.values[size(a)] < s_.values[size(b)]; });
    }

    void run(const std::function<std::int64_t()> &choose)
    {
        deflate();
        solve();
        recompute_z();
        gather();
        const std::int64_t wanted = place_values(choose);
        make_parts(wanted);
        multiply();
    }

private:
    static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
    std::size_t local(std::int64_t i) const { return size(i - c_.first); }
    std::int64_t kept() const { return static_cast<std::int64_t>(kept_.size()); }
    // Rows of the block in the two other matrices.
    double *gathered(std::int64_t i) { return s_.rows.data() + (c_.first + i) * s_.n + c_.first; }
    double *part(std::int64_t j) { return s_.parts.data() + (c_.first + j) * s_.n + c_.first; }

    // What rounding cannot tell from no coupling at all stays as it is: a small element of z, or two
    // values so near that a rotation makes one of their elements of z vanish.
    void deflate()
    {
        double largest = 0.0;
        for (std::int64_t i = c_.first; i < c_.last; ++i)
            largest = std::max({largest, std::fabs(s_.values[size(i)]), std::fabs(z_[local(i)])});
        const double tolerance = 8.0 * std::numeric_limits<double>::epsilon() * largest;
        for (std::int64_t at = c_.first; at < c_.last; ++at) {
            const std::int64_t i = s_.order[size(at)];
            if (rho_ * std::fabs(z_[local(i)]) <= tolerance) {
                deflated_.push_back(i);
                continue;
            }
            if (!kept_.empty() && rotate(kept_.back(), i, tolerance)) {
                deflated_.push_back(kept_.back());
                kept_.pop_back();
            }
            kept_.push_back(i);
        }
    }

    // Moves the weight of row a to row b where the values are near enough.
    bool rotate(std::int64_t a, std::int64_t b, double tolerance)
    {
        double &za = z_[local(a)], &zb = z_[local(b)], &da = s_.values[size(a)], &db = s_.values[size(b)];
        const double length = std::hypot(za, zb), cosine = zb / length, sine = -za / length;
        if (std::fabs((db - da) * cosine * sine) > tolerance)
            return false;
        zb = length;
        za = 0.0;
        if (support_[local(a)] != support_[local(b)])
            for (const std::int64_t i : {a, b})
                fill(i);
        kernels_.rotate(s_.row(a) + c_.first, s_.row(b) + c_.first, cosine, sine, n_);
        support_[local(b)] = support_[local(a)] == support_[local(b)] ? support_[local(b)] : both;
        support_[local(a)] = support_[local(b)];
        const double turned = da * cosine * cosine + db * sine * sine;
        db = da * sine * sine + db * cosine * cosine;
        da = turned;
        return true;
    }

    // Writes the zeros of a row that has only one side.
    void fill(std::int64_t i)
    {
        double *const row = s_.row(i);
        if (support_[local(i)] == left)
            std::fill(row + c_.middle, row + c_.last, 0.0);
        else if (support_[local(i)] == right)
            std::fill(row + c_.first, row + c_.middle, 0.0);
    }

    // The eigenvalues of what is kept; row j of the parts becomes all d less value j.
    void solve()
    {
        for (const std::int64_t i : kept_) {
            d_.push_back(s_.values[size(i)]);
            squares_.push_back(z_[local(i)] * z_[local(i)]);
        }
        roots_.resize(kept_.size());
        constexpr std::int64_t roots_per_task = 8;
        work_.run((kept() + roots_per_task - 1) / roots_per_task, [&](std::int64_t task) {
            for (std::int64_t j = task * roots_per_task; j < std::min(kept(), (task + 1) * roots_per_task); ++j) {
                work_.poll();
                roots_[size(j)] = secular_root(j, kept(), d_.data(), squares_.data(), rho_, part(j));
            }
        });
    }

    // The z for which the computed values are exact: element i is the root of the product over all j of
    // (value j - d_i) / (d_j - d_i), the denominator without j = i.
    void recompute_z()
    {
        exact_.assign(kept_.size(), 1.0);
        constexpr std::int64_t columns_per_task = 128;
        work_.run((kept() + columns_per_task - 1) / columns_per_task, [&](std::int64_t task) {
            const std::int64_t first = task * columns_per_task, last = std::min(kept(), first + columns_per_task);
            for (std::int64_t j = 0; j < kept(); ++j) {
                if (j % 1024 == 0)
                    work_.poll();
                const double *const differences = part(j);
                for (std::int64_t i = first; i < last; ++i)
                    exact_[size(i)] *= i == j ? -differences[i] : differences[i] / (d_[size(i)] - d_[size(j)]);
            }
            for (std::int64_t i = first; i < last; ++i)
                exact_[size(i)] = std::copysign(std::sqrt(std::fabs(exact_[size(i)])), z_[local(kept_[size(i)])]);
        });
    }

    // Copies rows together by their support, so that products skip the zeros; what is deflated follows.
    void gather()
    {
        for (const Support support : {left, both, right}) {
            for (std::int64_t i = 0; i < kept(); ++i)
                if (support_[local(kept_[size(i)])] == support)
                    turn_.push_back(i);
            ends_[support] = static_cast<std::int64_t>(turn_.size());
        }
        for (std::int64_t r = 0; r < n_; ++r) {
            work_.poll();
            const std::int64_t from = r < kept() ? kept_[size(turn_[size(r)])] : deflated_[size(r - kept())];
            fill(from);
            std::copy_n(s_.row(from) + c_.first, n_, gathered(r));
            old_.push_back(s_.values[size(from)]);
        }
    }

    // Values and order of the new block: what is kept first, row j for root j, what is deflated behind.
    std::int64_t place_values(const std::function<std::int64_t()> &choose)
    {
        for (std::int64_t r = 0; r < n_; ++r) {
            s_.values[size(c_.first + r)] = r < kept() ? roots_[size(r)] : old_[size(r)];
            s_.order[size(c_.first + r)] = c_.first + r;
        }
        std::sort(s_.order.begin() + c_.first, s_.order.begin() + c_.last, [&](std::int64_t a, std::int64_t b) {
            const double x = s_.values[size(a)], y = s_.values[size(b)];
            return x < y || (x == y && a < b);
        });
        return choose ? choose() : n_;
    }

    // The vectors of the kept matrix, of unit length, their elements in the order of the gathered rows.
    // Root j is wanted when its value is among the largest; as roots ascend, these are the last ones.
    void make_parts(std::int64_t wanted)
    {
        first_root_ = kept();
        for (std::int64_t i = c_.last - wanted; i < c_.last; ++i)
            first_root_ = std::min(first_root_, s_.order[size(i)] - c_.first);
        constexpr std::int64_t roots_per_task = 8;
        work_.run((kept() - first_root_ + roots_per_task - 1) / roots_per_task, [&](std::int64_t task) {
            std::vector<double> vector(kept_.size());
            const std::int64_t first = first_root_ + task * roots_per_task;
            for (std::int64_t j = first; j < std::min(kept(), first + roots_per_task); ++j) {
                work_.poll();
                double *const differences = part(j);
                for (std::int64_t i = 0; i < kept(); ++i)
                    vector[size(i)] = exact_[size(i)] / differences[i];
                const double length = std::sqrt(kernels_.dot(vector.data(), vector.data(), kept()));
                for (std::int64_t r = 0; r < kept(); ++r)
                    differences[r] = vector[size(turn_[size(r)])] / length;
            }
        });
    }

    void multiply()
    {
        const std::int64_t roots = kept() - first_root_;
        for (std::int64_t r = 0; r < n_; ++r) {
            work_.poll();
            double *const row = s_.row(c_.first + r) + c_.first;
            if (r < kept())
                std::fill(row, row + n_, 0.0);
            else
                std::copy_n(gathered(r), n_, row);
        }
        if (roots <= 0)
            return;
        const std::int64_t width = c_.middle - c_.first;
        double *const to = s_.row(c_.first + first_root_) + c_.first;
        add_product(work_, 1.0, {part(first_root_), roots, ends_[both], s_.n, 1},
                    {gathered(0), ends_[both], width, s_.n, 1}, to, s_.n);
        add_product(work_, 1.0, {part(first_root_) + ends_[left], roots, kept() - ends_[left], s_.n, 1},
                    {gathered(ends_[left]) + width, kept() - ends_[left], n_ - width, s_.n, 1}, to + width, s_.n);
    }

    const MatrixWork &work_;
    const cpu::VectorKernels &kernels_ = cpu::vector_kernels(cpu::best_instruction_set());
    PartialEigen &s_;
    const Coupling c_;
    const std::int64_t n_;
    const double rho_;
    std::vector<double> z_;                           // by row of the block
    std::vector<Support> support_;                    // likewise
    std::vector<std::int64_t> kept_, deflated_;       // rows, ascending by value
    std::vector<double> d_, squares_, roots_, exact_; // of what is kept
    std::vector<std::int64_t> turn_;                  // kept rows by support
    std::int64_t ends_[3] = {};                       // of each support's rows among them
    std::vector<double> old_;                         // values of the gathered rows
    std::int64_t first_root_ = 0;                     // of those whose vectors are wanted
};

} // namespace

void merge(const MatrixWork &work, PartialEigen &state, const Coupling &coupling,
           const std::function<std::int64_t()> &choose)
{
    Merge(work, state, coupling).run(choose);
}

} // namespace pgkm
