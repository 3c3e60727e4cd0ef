// missing.cpp - the order of incomplete rows by what they lack, and their E step.
#include "engine/mixture/missing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string>

#include "backend/covariance.hpp"
#include "engine/mixture/factors.hpp"
#include "engine/rows/missing.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "numeric/reduction.hpp"

namespace pgkm {
namespace {

// Rows whose expected values under all components are held at a time.
constexpr std::int64_t rows_at_once = 64;

// And of the covariances of what they lack as much as so many whole ones.
constexpr std::int64_t most_covariances = 4;

constexpr std::int64_t rows_per_poll = 1 << 14;

// As invert_factor(). Throws where that returns NaN.
double invert(RowMatrix &matrix, const Poll &poll)
{
    const double log_determinant = invert_factor(matrix.data(), matrix.rows(), poll);
    if (std::isnan(log_determinant))
        throw Error(PGKM_INVALID, "a covariance is singular for rows that lack values: raise reg_covar or lower k");
    return log_determinant;
}

// The marginal density of what is observed, and the regression of what is missing on it.
void expect_by_covariance(const MissingPattern &pattern, const Component &component, const Poll &poll,
                          ExpectedRows &expected)
{
    const Eigen::Map<const RowMatrix> covariance(component.covariance, component.d, component.d);
    RowMatrix factor = covariance(pattern.observed, pattern.observed); // of its inverse, from now on
    expected.log_densities -= invert(factor, poll);
    const RowMatrix scaled = RowMatrix(expected.deviations(Eigen::all, pattern.observed)) * factor.transpose();
    const RowMatrix regression = RowMatrix(covariance(pattern.missing, pattern.observed)) * factor.transpose();
    expected.log_densities -= 0.5 * scaled.rowwise().squaredNorm().array();
    expected.deviations(Eigen::all, pattern.missing) = scaled * regression.transpose();
    expected.covariance = covariance(pattern.missing, pattern.missing) - regression * regression.transpose();
}

// The same by W with W'W = S^-1. What is expected makes |W (x - mean)| least, which is then that of the marginal.
void expect_by_precision(const MissingPattern &pattern, const Component &component, const Poll &poll,
                         ExpectedRows &expected)
{
    const Eigen::Map<const RowMatrix> w(component.factor, component.d, component.d);
    const RowMatrix of_missing = w(Eigen::all, pattern.missing);
    RowMatrix factor = of_missing.transpose() * of_missing; // of its inverse, from now on
    expected.log_densities += component.log_determinant - invert(factor, poll);
    expected.covariance = factor.transpose() * factor;
    RowMatrix scaled = expected.deviations * w.transpose(); // where nothing is expected yet
    const RowMatrix moved = -(scaled * of_missing) * expected.covariance;
    scaled += moved * of_missing.transpose();
    expected.log_densities -= 0.5 * scaled.rowwise().squaredNorm().array();
    expected.deviations(Eigen::all, pattern.missing) = moved;
}

// Features are independent: what is observed says nothing of what is missing.
void expect_by_variances(const MissingPattern &pattern, const Component &component, ExpectedRows &expected)
{
    const Eigen::Map<const Eigen::VectorXd> variances(component.covariance, component.d);
    const Eigen::RowVectorXd observed = variances(pattern.observed);
    const RowMatrix deviations = expected.deviations(Eigen::all, pattern.observed);
    expected.log_densities -= 0.5 * observed.array().log().sum();
    expected.log_densities -= 0.5 * (deviations.array().square().rowwise() / observed.array()).rowwise().sum();
    expected.covariance = variances(pattern.missing);
}

template <typename T>
RowMatrix rows_of(const PgkmPoints &points, std::int64_t first, std::int64_t count)
{
    const T *const values = static_cast<const T *>(points.values) + first * points.d;
    return Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(values, count, points.d)
        .template cast<double>();
}

// The E step of incomplete rows, block by block into R: the log-likelihood, then masses, first and second sums as in
// PgkmMixtureSums.
class MissingStep {
  public:
    MissingStep(const std::vector<MissingPattern> &patterns, const PgkmPoints &points, const PgkmMixture &mixture,
                const double *covariances, const Poll &poll, const PgkmMixtureSums &sums)
        : patterns_(patterns), points_(points), type_(mixture.covariance_type), poll_(poll), labels_(sums.labels),
          wants_sums_(sums.masses != nullptr), k_(mixture.k), d_(points.d),
          second_size_(second_size(type_, 1, points.d))
    {
        for (std::int64_t j = 0; j < k_; ++j)
            components_.emplace_back(mixture, covariances, d_, j);
    }

    std::int64_t values() const { return wants_sums_ ? 1 + k_ * (1 + d_ + second_size_) : 1; }

    // Rows from `first` on, but none from `last` on, into R. Returns where they end.
    std::int64_t block(std::int64_t first, std::int64_t last, double *r) const
    {
        std::vector<Run> runs = runs_from(first, last);
        const std::int64_t end = runs.back().first + runs.back().count;
        RowMatrix shares(end - first, k_);
        for (Run &run : runs) {
            const RowMatrix rows = points_.element == PGKM_FLOAT32 ? rows_of<float>(points_, run.first, run.count)
                                                                   : rows_of<double>(points_, run.first, run.count);
            for (std::int64_t j = 0; j < k_; ++j) {
                run.expected.push_back(expected_rows(*run.pattern, components_[at(j)], rows, poll_));
                shares.block(run.first - first, j, run.count, 1) = run.expected.back().log_densities;
            }
        }
        for (std::int64_t i = first; i < end; ++i)
            r[0] += share_out_row(i, shares.row(i - first).data());
        for (std::int64_t j = 0; wants_sums_ && j < k_; ++j) {
            poll_();
            add_component(runs, shares.col(j), j, r + 1);
        }
        return end;
    }

    // Adds R to the sums of other rows.
    void add_to(PgkmMixtureSums &sums, const double *r) const
    {
        const auto add = [&r](double *to, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i)
                to[i] += *r++;
        };
        add(&sums.log_likelihood, 1);
        if (!wants_sums_)
            return;
        add(sums.masses, k_);
        add(sums.first, k_ * d_);
        add(sums.second, k_ * second_size_);
    }

  private:
    // Logarithms of a row's densities become its responsibilities, by its weight. Returns its log-likelihood.
    double share_out_row(std::int64_t row, double *shares) const
    {
        const double weight = points_.weights == nullptr ? 1.0 : points_.weights[row];
        std::int32_t label;
        const double log_density = share_out(k_, shares, &label);
        if (labels_ != nullptr)
            labels_[row] = label;
        for (std::int64_t j = 0; j < k_; ++j)
            shares[j] *= weight;
        return weight * log_density;
    }

    // Rows of one pattern in a block, and what each component says of them.
    struct Run {
        const MissingPattern *pattern;
        std::int64_t first, count;
        std::vector<ExpectedRows> expected;
    };

    // Those of the next block: few enough rows, and covariances of what they lack.
    std::vector<Run> runs_from(std::int64_t first, std::int64_t last) const
    {
        std::vector<Run> runs;
        const std::int64_t end = std::min(last, first + rows_at_once);
        auto pattern =
            std::prev(std::upper_bound(patterns_.begin(), patterns_.end(), first,
                                       [](std::int64_t i, const MissingPattern &p) { return i < p.first_row; }));
        for (std::int64_t values = 0; first < end; ++pattern) {
            const std::int64_t missing = std::ssize(pattern->missing);
            values += type_ == PGKM_COVARIANCE_DIAG ? missing : missing * missing;
            if (!runs.empty() && values > most_covariances * CovarianceShape(type_).size(d_))
                break;
            const std::int64_t count = std::min(end, pattern->first_row + pattern->n_rows) - first;
            runs.push_back({&*pattern, first, count, {}});
            first += count;
        }
        return runs;
    }

    void add_component(const std::vector<Run> &runs, const Eigen::VectorXd &shares, std::int64_t j, double *r) const
    {
        Eigen::Map<Eigen::RowVectorXd> first(r + k_ + j * d_, d_);
        double *const second = r + k_ + k_ * d_ + j * second_size_;
        RowMatrix deviations(shares.size(), d_);
        Eigen::Index row = 0;
        for (const Run &run : runs) {
            const ExpectedRows &expected = run.expected[at(j)];
            deviations.middleRows(row, run.count) = expected.deviations;
            add_covariance(*run.pattern, expected.covariance, shares.segment(row, run.count).sum(), second);
            row += run.count;
        }
        r[j] += shares.sum();
        first += shares.transpose() * deviations;
        if (type_ == PGKM_COVARIANCE_DIAG) {
            Eigen::Map<Eigen::RowVectorXd>(second, d_) += shares.transpose() * deviations.cwiseAbs2();
            return;
        }
        const RowMatrix squares = deviations.transpose() * shares.asDiagonal() * deviations;
        double *to = second;
        for (std::int64_t a = 0; a < d_; ++a, to += a)
            Eigen::Map<Eigen::RowVectorXd>(to, a + 1) += squares.row(a).head(a + 1);
    }

    void add_covariance(const MissingPattern &pattern, const RowMatrix &covariance, double mass, double *second) const
    {
        const bool is_diagonal = type_ == PGKM_COVARIANCE_DIAG;
        for (std::size_t a = 0; a < pattern.missing.size(); ++a) {
            const std::int64_t row = pattern.missing[a];
            if (is_diagonal)
                second[row] += mass * covariance(static_cast<Eigen::Index>(a), 0);
            for (std::size_t b = 0; !is_diagonal && b <= a; ++b)
                second[row * (row + 1) / 2 + pattern.missing[b]] +=
                    mass * covariance(static_cast<Eigen::Index>(a), static_cast<Eigen::Index>(b));
        }
    }

    const std::vector<MissingPattern> &patterns_;
    const PgkmPoints &points_;
    const PgkmCovariance type_;
    const Poll &poll_;
    std::int32_t *const labels_;
    const bool wants_sums_;
    const std::int64_t k_, d_, second_size_;
    std::vector<Component> components_;
};

} // namespace

ExpectedRows expected_rows(const MissingPattern &pattern, const Component &component, const RowMatrix &rows,
                           const Poll &poll)
{
    const auto n_observed = static_cast<double>(pattern.observed.size());
    ExpectedRows expected;
    expected.deviations = rows.rowwise() - Eigen::Map<const Eigen::RowVectorXd>(component.mean, component.d);
    expected.deviations(Eigen::all, pattern.missing).setZero();
    expected.log_densities = Eigen::ArrayXd::Constant(
        rows.rows(), component.log_weight - 0.5 * n_observed * std::log(2.0 * std::numbers::pi));
    if (component.type == PGKM_COVARIANCE_DIAG)
        expect_by_variances(pattern, component, expected);
    else if (pattern.missing.size() < pattern.observed.size())
        expect_by_precision(pattern, component, poll, expected);
    else
        expect_by_covariance(pattern, component, poll, expected);
    return expected;
}

Component::Component(const PgkmMixture &mixture, const double *covariances, std::int64_t features, std::int64_t j)
    : type(mixture.covariance_type), d(features), log_weight(mixture.log_weights[j]),
      log_determinant(mixture.log_determinants[j]), mean(mixture.means + j * d),
      factor(mixture.factors + j * CovarianceShape(type).size(d)),
      covariance(covariances + j * CovarianceShape(type).size(d))
{
}

double share_out(std::int64_t k, double *posterior, std::int32_t *label)
{
    *label = static_cast<std::int32_t>(std::max_element(posterior, posterior + k) - posterior);
    const double largest = posterior[*label];
    double sum = 0.0;
    for (std::int64_t j = 0; j < k; ++j)
        sum += posterior[j] = std::exp(posterior[j] - largest);
    for (std::int64_t j = 0; j < k; ++j)
        posterior[j] /= sum;
    return largest + std::log(sum);
}

IncompleteRows::IncompleteRows(const PgkmPoints &points, const Poll &poll)
{
    points_ = points;
    if (points.element == PGKM_FLOAT32)
        read<float>(points, poll);
    else
        read<double>(points, poll);
}

template <typename T>
void IncompleteRows::read(const PgkmPoints &points, const Poll &poll)
{
    const std::int64_t n = points.n, d = points.d;
    const T *const from = static_cast<const T *>(points.values);
    std::map<std::vector<std::uint64_t>, std::vector<std::int64_t>> rows; // by the bits of what is missing
    std::vector<std::uint64_t> bits(at((d + 63) / 64));
    masses_.resize(at(d));
    for (std::int64_t i = 0; i < n; ++i) {
        if (i % rows_per_poll == 0)
            poll();
        std::fill(bits.begin(), bits.end(), 0);
        for (std::int64_t f = 0; f < d; ++f)
            if (std::isnan(from[i * d + f]))
                bits[at(f / 64)] |= std::uint64_t{1} << (f % 64);
            else
                masses_[at(f)] += points.weights == nullptr ? 1.0 : points.weights[i];
        rows[bits].push_back(i);
    }
    values_.resize(at(n * d * static_cast<std::int64_t>(sizeof(T)) / 8 + 1));
    T *const to = reinterpret_cast<T *>(values_.data());
    for (const auto &[_, of_pattern] : rows) {
        MissingPattern pattern = pattern_of(from + of_pattern[0] * d, points.d);
        pattern.first_row = std::ssize(order_);
        pattern.n_rows = std::ssize(of_pattern);
        for (const std::int64_t row : of_pattern) {
            if (order_.size() % rows_per_poll == 0)
                poll();
            std::copy_n(from + row * d, d, to + std::ssize(order_) * d);
            if (points.weights != nullptr)
                weights_.push_back(points.weights[row]);
            order_.push_back(row);
        }
        if (pattern.missing.empty())
            complete_ = pattern.n_rows;
        else
            patterns_.push_back(std::move(pattern));
    }
    points_.values = to;
    points_.weights = weights_.empty() ? nullptr : weights_.data();
    std::vector<double> means(at(d));
    const std::int32_t feature = fill_missing(to, points_, means.data(), poll);
    if (feature > 0)
        throw Error(PGKM_INVALID, "feature " + std::to_string(feature) + " has no value in any row");
}

void IncompleteRows::restore(std::vector<std::int32_t> &labels) const
{
    const std::vector<std::int32_t> found = labels;
    for (std::size_t i = 0; i < found.size(); ++i)
        labels[at(order_[i])] = found[i];
}

void add_incomplete(const IncompleteRows &incomplete, const PgkmPoints &points, const PgkmMixture &mixture,
                    const double *covariances, Session &session, std::int32_t threads, const Poll &poll,
                    PgkmMixtureSums &sums)
{
    const std::int64_t complete = incomplete.complete();
    const MissingStep step(incomplete.patterns(), points, mixture, covariances, poll, sums);
    const SumPlan plan = plan_sums(points.n - complete, rows_at_once, step.values(), 1);
    LargeArray<double> memory(at(plan.memory()), 0.0);
    OrderedSums ordered(plan, memory.data());
    ordered.add(
        0, points.n - complete, [&](std::int64_t tasks, const auto &body) { session.run_tasks(tasks, threads, body); },
        [&](const ReductionTask &task, double *r, int) {
            for (std::int64_t row = complete + task.first; row < complete + task.last;)
                row = step.block(row, complete + task.last, r);
        });
    step.add_to(sums, ordered.total());
}

double incomplete_bytes(const PgkmPoints &points, double k, double covariance_size, double threads)
{
    const double n = static_cast<double>(points.n), d = points.d;
    const double value = points.element == PGKM_FLOAT32 ? 4.0 : 8.0;
    const double weights = points.weights == nullptr ? 0.0 : 16.0; // the vector grows
    // The copy, both orders as they grow, patterns of one row each at most; expected rows of all components.
    return n * (d * (value + 4.0) + weights + 200.0) +
           threads * 8.0 *
               (k * (static_cast<double>(rows_at_once) * (d + 2.0) + (most_covariances + 1.0) * covariance_size) +
                5.0 * static_cast<double>(rows_at_once) * d + 4.0 * d * d);
}

} // namespace pgkm
