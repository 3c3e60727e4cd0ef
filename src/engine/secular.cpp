#include "engine/secular.hpp"

#include <cmath>
#include <limits>

namespace pgkm {
namespace {

// f and what the steps need of it at one point.
struct Value {
    double f;
    double below, above; // slopes of the sums over the poles up to j, and beyond
    double error;        // what rounding may make of f, in units of epsilon
};

class Root {
public:
    Root(std::int64_t j, std::int64_t n, const double *d, const double *squares, double rho)
        : j_(j), n_(n), d_(d), squares_(squares), inverse_(1.0 / rho), last_(j + 1 == n)
    {
        if (last_)
            for (std::int64_t i = 0; i < n; ++i)
                gap_ += rho * squares[i];
        else
            gap_ = d[j + 1] - d[j];
    }

    // The root less the pole it is counted from.
    double find()
    {
        double tau = first_guess();
        for (int steps = 0; steps < most_steps; ++steps) {
            const Value value = at(tau);
            if (std::fabs(value.f) <= std::numeric_limits<double>::epsilon() * value.error)
                break;
            (value.f < 0.0 ? low_ : high_) = tau;
            double next = tau + (steps < most_rational_steps ? step(tau, value) : 0.0);
            if (!(next > low_ && next < high_))
                next = low_ + (high_ - low_) / 2.0;
            if (next == tau || next == low_ || next == high_)
                break;
            tau = next;
        }
        return tau;
    }

    std::int64_t origin() const { return origin_; }

private:
    static constexpr int most_rational_steps = 40, most_steps = 200;

    double difference(std::int64_t i, double tau) const { return (d_[i] - d_[origin_]) - tau; }

    // Decides from f amid the interval which pole is nearer, and solves for the two poles alone.
    double first_guess()
    {
        const double middle = gap_ / 2.0;
        double others = inverse_;
        for (std::int64_t i = 0; i < n_; ++i)
            if (i != j_ && i != j_ + 1)
                others += squares_[i] / ((d_[i] - d_[j_]) - middle);
        const double left = squares_[j_], right = last_ ? 0.0 : squares_[j_ + 1];
        const bool near_left = last_ || others - left / middle + right / middle >= 0.0;
        origin_ = near_left ? j_ : j_ + 1;
        low_ = near_left ? 0.0 : -middle;
        high_ = last_ ? gap_ * (1.0 + 1e-12) : near_left ? middle : 0.0;
        const double guess = last_       ? left / others
                             : near_left ? from_left(others, left, right)
                                         : from_right(others, left, right);
        return guess > low_ && guess < high_ ? guess : low_ + (high_ - low_) / 2.0;
    }

    // The root of others - left / t + right / (gap - t) in (0, gap).
    double from_left(double others, double left, double right) const
    {
        const double a = others * gap_ + left + right, b = left * gap_;
        const double root = std::sqrt(std::fabs(a * a - 4.0 * b * others));
        return a >= 0.0 ? 2.0 * b / (a + root) : (a - root) / (2.0 * others);
    }

    // The root of others - left / (gap + t) - right / t in (-gap, 0).
    double from_right(double others, double left, double right) const
    {
        const double a = left + right - others * gap_, b = right * gap_;
        const double root = std::sqrt(std::fabs(a * a + 4.0 * b * others));
        return a >= 0.0 ? -2.0 * b / (a + root) : (a - root) / (2.0 * others);
    }

    Value at(double tau) const
    {
        double below = 0.0, slope_below = 0.0, above = 0.0, slope_above = 0.0, partial = 0.0;
        for (std::int64_t i = 0; i <= j_; ++i) {
            const double inverse = 1.0 / difference(i, tau), term = squares_[i] * inverse;
            below += term;
            slope_below += term * inverse;
            partial -= below;
        }
        for (std::int64_t i = n_ - 1; i > j_; --i) {
            const double inverse = 1.0 / difference(i, tau), term = squares_[i] * inverse;
            above += term;
            slope_above += term * inverse;
            partial += above;
        }
        return {inverse_ + below + above, slope_below, slope_above,
                partial + 8.0 * (above - below) + 2.0 * inverse_ + std::fabs(tau) * (slope_below + slope_above)};
    }

    // To the root of c + p / (left - t) + q / (right - t) that agrees with f in both sums' values and slopes.
    double step(double tau, const Value &value) const
    {
        const double left = difference(j_, tau);
        if (last_)
            return value.f * left / (value.f - left * value.below);
        const double right = difference(j_ + 1, tau);
        const double c = value.f - left * value.below - right * value.above;
        const double a = (left + right) * value.f - left * right * (value.below + value.above);
        const double b = left * right * value.f;
        const double root = std::sqrt(std::fabs(a * a - 4.0 * b * c));
        return a <= 0.0 ? (a - root) / (2.0 * c) : 2.0 * b / (a + root);
    }

    const std::int64_t j_, n_;
    const double *const d_, *const squares_;
    const double inverse_;
    const bool last_;
    double gap_ = 0.0;
    std::int64_t origin_ = 0;
    double low_ = 0.0, high_ = 0.0; // f(low) < 0 < f(high)
};

} // namespace

double secular_root(std::int64_t j, std::int64_t n, const double *d, const double *squares, double rho,
                    double *differences)
{
    Root root(j, n, d, squares, rho);
    const double tau = root.find();
    const double pole = d[root.origin()];
    for (std::int64_t i = 0; i < n; ++i)
        differences[i] = (d[i] - pole) - tau;
    return pole + tau;
}

} // namespace pgkm
