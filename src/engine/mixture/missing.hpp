// missing.hpp - mixtures of rows some of whose values are missing (Ghahramani and Jordan 1994, "Supervised learning
// from incomplete data via an EM approach", section 3).
//
// The E step of a row with the values o takes a component's responsibility by the density of o alone. What is missing
// gets its mean given o, and the sums of squares its covariance given o:
//
//     mean_m + S_mo S_oo^-1 (o - mean_o),     S_mm - S_mo S_oo^-1 S_om
//
// Either S_oo is factorised, or, where less is missing than not, the same block of the precision S^-1, which is the
// inverse of that covariance: once for all rows of a pattern, as far as they lie in one block.
#pragma once

#include <cmath>
#include <vector>

#include <Eigen/Core>

#include "engine/backends/session.hpp"
#include "engine/job/poll.hpp"
#include "numeric/large_array.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Rows that lack the same features.
struct MissingPattern {
    std::vector<int> observed, missing; // features, ascending
    std::int64_t first_row, n_rows;
};

// A component of a mixture of type full or diag: its part of PgkmMixture, and its covariance.
struct Component {
    Component(const PgkmMixture &mixture, const double *covariances, std::int64_t d, std::int64_t j);

    PgkmCovariance type;
    std::int64_t d;
    double log_weight, log_determinant;
    const double *mean, *factor, *covariance;
};

// What a component says of some rows.
struct ExpectedRows {
    Eigen::ArrayXd log_densities; // of their values, by weight
    RowMatrix deviations;         // from the mean: of the values, and of what is expected in the place of others
    RowMatrix covariance;         // of what is missing: m x m; of diag m x 1
};

// Of rows of a pattern; what they hold for what is missing is not read. Throws Error(PGKM_INVALID).
ExpectedRows expected_rows(const MissingPattern &pattern, const Component &component, const RowMatrix &rows,
                           const Poll &poll);

// Logarithms of k densities become responsibilities, the lowest index of the largest goes to *label. Returns the
// logarithm of the sum.
double share_out(std::int64_t k, double *densities, std::int32_t *label);

// That of one row, whose features that are NaN are missing.
template <typename T>
MissingPattern pattern_of(const T *row, std::int32_t d)
{
    MissingPattern pattern = {{}, {}, 0, 1};
    for (std::int32_t f = 0; f < d; ++f)
        (std::isnan(row[f]) ? pattern.missing : pattern.observed).push_back(f);
    return pattern;
}

// Rows, NaN where a value is missing, in another order: complete ones first, then those of each pattern, which lie as
// they came. The means of the features stand in the place of what is missing.
class IncompleteRows {
  public:
    // Throws Error(PGKM_INVALID) for a feature without any value.
    IncompleteRows(const PgkmPoints &points, const Poll &poll);
    IncompleteRows(const IncompleteRows &) = delete;
    IncompleteRows &operator=(const IncompleteRows &) = delete;

    const PgkmPoints &points() const { return points_; }
    std::int64_t complete() const { return complete_; } // rows
    const std::vector<MissingPattern> &patterns() const { return patterns_; }
    const std::vector<double> &masses() const { return masses_; } // d: of the rows that have a value
    // Labels of these rows become those of the rows as they came.
    void restore(std::vector<std::int32_t> &labels) const;

  private:
    template <typename T>
    void read(const PgkmPoints &points, const Poll &poll);

    PgkmPoints points_;
    std::int64_t complete_ = 0;
    std::vector<MissingPattern> patterns_;
    std::vector<double> masses_;
    std::vector<std::int64_t> order_; // row i was row order_[i]
    LargeArray<double> values_;       // of either type
    std::vector<double> weights_;
};

// The E step of the rows that are not complete, which are `points` in the space of the mixture: adds to the sums, of
// which all but the log-likelihood may be NULL, and sets their labels.
void add_incomplete(const IncompleteRows &incomplete, const PgkmPoints &points, const PgkmMixture &mixture,
                    const double *covariances, Session &session, std::int32_t threads, const Poll &poll,
                    PgkmMixtureSums &sums);

// Bytes that it takes beside the sums of all rows, for so many threads.
double incomplete_bytes(const PgkmPoints &points, double k, double covariance_size, double threads);

} // namespace pgkm
