// update.hpp - from integer sums to new centroids: the part of Lloyd's iteration that is
// the same for every backend that updates on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "numeric/contract.hpp"
#include "numeric/row_key.hpp"

namespace pgkm {

inline PgkmInt128 split(Int128 value)
{
    return {static_cast<std::uint64_t>(value), static_cast<std::int64_t>(value >> 64)};
}

inline Int128 join(PgkmInt128 value)
{
    return static_cast<Int128>(value.hi) * (Int128{1} << 64) + value.lo;
}

// Integer sums of one problem.
struct Sums {
    std::vector<Int128> totals; // k x d
    std::vector<Int128> masses; // k

    void reset(std::int32_t k, std::int32_t d)
    {
        totals.assign(std::int64_t{k} * d, 0);
        masses.assign(k, 0);
    }
};

// The integer of a value as it enters a sum; with weights `value` has its row's in it.
inline Int128 scaled_value(const PgkmPoints &points, double value, std::int32_t exponent)
{
    const double scale = power_of_two(exponent);
    if (points.weights == nullptr)
        return quantise(value, scale);
    const Limbs limbs = quantise_weighted(value, scale);
    return join_limbs(limbs.hi, limbs.lo);
}

// The integers of one row: what it adds to its cluster.
inline Int128 row_mass(const PgkmPoints &points, const PgkmProblem &problem, std::int64_t row)
{
    return points.weights == nullptr ? 1 : scaled_value(points, points.weights[row], problem.weight_exponent);
}

template <typename T>
inline Int128 row_feature(const PgkmPoints &points, const PgkmProblem &problem, std::int64_t row, std::int32_t feature)
{
    const double value = static_cast<double>(static_cast<const T *>(points.values)[row * points.d + feature]);
    const PgkmFeatureScale &scale = problem.feature_scales[feature];
    const double centred = value - scale.origin;
    const double product = points.weights == nullptr ? centred : points.weights[row] * centred;
    return scaled_value(points, product, scale.exponent);
}

inline bool has_empty_cluster(const Sums &sums)
{
    for (const Int128 mass : sums.masses)
        if (mass == 0)
            return true;
    return false;
}

// A row at some distance (squared, not 0) from the centroid it was assigned to.
struct FarRow {
    double square;
    std::int64_t row; // counted from the problem's first
    std::int32_t label;
    std::int32_t copies = 1; // rows that it stands for, equal in all
};

// The order in which relocation takes rows, which does not depend on the order of the rows: the farther comes first;
// on a tie the one of lesser content (features in order), then that of lesser weight. Rows that are equal in all
// are interchangeable.
template <typename T>
struct FarOrder {
    const PgkmPoints &points;
    std::int64_t first_row; // of the problem

    bool operator()(const FarRow &a, const FarRow &b) const
    {
        if (a.square != b.square)
            return a.square > b.square;
        const auto *values = static_cast<const T *>(points.values);
        const std::int64_t x = first_row + a.row, y = first_row + b.row;
        const int order = compare_content(values + x * points.d, values + y * points.d, points.d);
        if (order != 0 || points.weights == nullptr)
            return order < 0;
        return points.weights[x] < points.weights[y];
    }
};

// The `most` first in FarOrder of the rows that are added, which may be at no distance: those are left out.
template <typename T>
class FirstFarRows {
  public:
    FirstFarRows(const FarOrder<T> &before, std::size_t most) : before_(before), most_(most) {}

    void add(const FarRow &row)
    {
        if (row.square == 0.0 || (rows_.size() == most_ && !before_(row, rows_.front())))
            return;
        if (rows_.size() == most_) {
            std::pop_heap(rows_.begin(), rows_.end(), before_);
            rows_.pop_back();
        }
        rows_.push_back(row);
        std::push_heap(rows_.begin(), rows_.end(), before_);
    }
    // The one that all others go before, once there are `most`, else nullptr.
    const FarRow *last() const { return rows_.size() < most_ ? nullptr : rows_.data(); }
    // In no order.
    const std::vector<FarRow> &rows() const { return rows_; }

  private:
    FarOrder<T> before_;
    std::size_t most_;
    std::vector<FarRow> rows_; // a heap with the last of them on top
};

// A row that goes to a cluster that had none.
struct MovedRow {
    std::int64_t row; // of the points
    std::int32_t from, to;
};

// Gives every cluster of mass 0, in ascending order, that of these rows which is first in FarOrder, and takes that row
// from its old cluster. A row is eligible when its mass is not 0 and its old cluster keeps some mass without it. Of
// several copies one is taken, and the rest stay eligible. A cluster that finds no row stays empty. The rows may come
// in any order, and are left in another one; their labels are those of the assignment that made the sums. Masses change
// here; totals are left to move_rows().
template <typename T>
std::vector<MovedRow> fill_empty_clusters(const PgkmPoints &points, const PgkmProblem &problem,
                                          std::vector<FarRow> &rows, std::vector<Int128> &masses);

// Takes the rows' values from the totals of the one cluster; the other has nothing else from then on.
template <typename T>
void move_rows(const PgkmPoints &points, const PgkmProblem &problem, const std::vector<MovedRow> &moved, Sums &sums);

// What sees to the totals; the rows moved are of these points.
using MoveRows =
    std::function<void(const PgkmPoints &points, const PgkmProblem &problem, const std::vector<MovedRow> &moved)>;

template <typename T>
MoveRows move_within(Sums &sums)
{
    return [&](const PgkmPoints &points, const PgkmProblem &problem, const std::vector<MovedRow> &moved) {
        move_rows<T>(points, problem, moved, sums);
    };
}

// Both, of these rows.
template <typename T>
void relocate_empty_clusters(const PgkmPoints &points, const PgkmProblem &problem, std::vector<FarRow> &rows,
                             Sums &sums)
{
    move_rows<T>(points, problem, fill_empty_clusters<T>(points, problem, rows, sums.masses), sums);
}

// The choice among all rows, where farthest(most) returns the `most` first of them in FarOrder
// (all, where there are fewer), in any order. Few rows are taken, so few are asked for; should too
// many of them be unfit (their clusters would be left empty), more are.
template <typename T, typename Farthest>
void relocate_by_farthest(const PgkmPoints &points, const PgkmProblem &problem, std::vector<Int128> &masses,
                          Farthest &&farthest, const MoveRows &move)
{
    const auto n = static_cast<std::size_t>(problem.n_rows);
    const auto empty = static_cast<std::size_t>(std::count(masses.begin(), masses.end(), Int128{0}));
    for (std::size_t wanted = 64 + 4 * empty;; wanted *= 8) {
        const std::size_t most = std::min(wanted, n);
        std::vector<FarRow> rows = farthest(most);
        const bool all = rows.size() < most || most == n;
        std::vector<Int128> filled = masses;
        const std::vector<MovedRow> moved = fill_empty_clusters<T>(points, problem, rows, filled);
        if (all || moved.size() == empty) {
            masses = std::move(filled);
            return move(points, problem, moved);
        }
    }
}

// The new centroid of a cluster from its sums; false where it keeps its old one.
template <typename T>
bool new_centroid(const PgkmProblem &problem, std::int32_t d, PgkmMetric metric, const Int128 *totals, Int128 mass,
                  T *fresh);

// Writes the new centroids (a cluster of mass 0 keeps its old one; cosine: unit length, a
// zero mean keeps the old one) and returns the summed squared shift: per cluster
// exact_distance(new, old), added in ascending order of clusters.
template <typename T>
double update_centroids(const PgkmProblem &problem, std::int32_t d, PgkmMetric metric, const Sums &sums);

} // namespace pgkm
