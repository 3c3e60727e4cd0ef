// peers.hpp - what the peers of one problem tell one another (PgkmPeers): integer sums, whether anything changed, rows
// for empty clusters. Without peers all of it is the caller's own.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "backend/update.hpp"
#include "numeric/error.hpp"

namespace pgkm {

// The pieces of all peers. Throws Error(PGKM_CANCELLED) when there will be none.
inline const PgkmPiece *exchange(const PgkmPeers &peers, const void *own, std::uint64_t bytes)
{
    const PgkmPiece *const pieces = peers.exchange(peers.arg, own, bytes);
    if (pieces == nullptr)
        throw Error(PGKM_CANCELLED, "cancelled");
    return pieces;
}

// What each peer gives, in the order of the shares.
template <typename V>
std::vector<V> tell(const PgkmPeers &peers, const V &own)
{
    const PgkmPiece *const pieces = exchange(peers, &own, sizeof own);
    std::vector<V> all(static_cast<std::size_t>(peers.shares));
    for (std::size_t share = 0; share < all.size(); ++share)
        std::memcpy(&all[share], pieces[share].data, sizeof(V));
    return all;
}

// Adds up the peers' integers, of which each has so many.
template <typename Integer>
void add_over(const PgkmPeers *peers, Integer *sums, std::size_t count)
{
    if (peers == nullptr)
        return;
    const PgkmPiece *const pieces = exchange(*peers, sums, count * sizeof(Integer));
    for (std::size_t i = 0; i < count; ++i)
        sums[i] = 0;
    for (std::int32_t share = 0; share < peers->shares; ++share) {
        const auto *from = static_cast<const Integer *>(pieces[share].data);
        for (std::size_t i = 0; i < count; ++i)
            sums[i] += from[i];
    }
}

inline void add_over(const PgkmPeers *peers, Sums &sums)
{
    add_over(peers, sums.totals.data(), sums.totals.size());
    add_over(peers, sums.masses.data(), sums.masses.size());
}

// The rows of a problem, those of all peers.
inline std::int64_t all_rows(const PgkmProblem &problem)
{
    return problem.peers == nullptr ? problem.n_rows : problem.peers->n_rows;
}

// Widens the ranges of d features to those of all peers' rows, and the largest weight.
inline void widen_over(const PgkmPeers *peers, std::size_t d, double *min, double *max, double *max_weight)
{
    if (peers == nullptr)
        return;
    std::vector<double> own(min, min + d);
    own.insert(own.end(), max, max + d);
    own.push_back(*max_weight);
    const PgkmPiece *const pieces = exchange(*peers, own.data(), own.size() * sizeof(double));
    for (std::int32_t share = 0; share < peers->shares; ++share) {
        const auto *from = static_cast<const double *>(pieces[share].data);
        for (std::size_t f = 0; f < d; ++f) {
            min[f] = std::min(min[f], from[f]);
            max[f] = std::max(max[f], from[d + f]);
        }
        *max_weight = std::max(*max_weight, from[2 * d]);
    }
}

// Whether it is so for any peer.
inline bool any_of_peers(const PgkmPeers *peers, bool own)
{
    std::int32_t count = own ? 1 : 0;
    add_over(peers, &count, 1);
    return count != 0;
}

// Rows of several shares, as far as relocation needs them.
template <typename T>
class FarRows {
  public:
    // like: element, d, and whether there are weights.
    explicit FarRows(const PgkmPoints &like) : points_(like) {}

    void add(double square, std::int32_t label, double weight, const T *values)
    {
        rows_.push_back({square, static_cast<std::int64_t>(rows_.size()), label});
        weights_.push_back(weight);
        values_.insert(values_.end(), values, values + points_.d);
    }
    // The `most` first of them in FarOrder, counted in points().
    std::vector<FarRow> first(std::size_t most)
    {
        points_.values = values_.data();
        points_.n = static_cast<std::int64_t>(rows_.size());
        if (points_.weights != nullptr)
            points_.weights = weights_.data();
        std::vector<FarRow> rows = rows_;
        std::sort(rows.begin(), rows.end(), FarOrder<T>{points_, 0});
        rows.resize(std::min(rows.size(), most));
        return rows;
    }
    // Forgets others than the `most` first.
    void keep(std::size_t most)
    {
        if (rows_.size() <= most)
            return;
        FarRows kept(points_);
        for (const FarRow &row : first(most)) {
            const auto at = static_cast<std::size_t>(row.row);
            kept.add(row.square, row.label, weights_[at], values_.data() + at * static_cast<std::size_t>(points_.d));
        }
        *this = std::move(kept);
    }
    const PgkmPoints &points() const { return points_; }
    void clear()
    {
        rows_.clear();
        weights_.clear();
        values_.clear();
    }

  private:
    PgkmPoints points_;
    std::vector<FarRow> rows_;
    std::vector<double> weights_;
    std::vector<T> values_;
};

// Rows as they travel, with all that relocation needs to know of them; and those that have come, of k clusters, to
// `rows`. Throws Error(PGKM_INVALID) for what no pack() has made.
template <typename T>
std::vector<char> pack(const PgkmPoints &points, std::int64_t first_row, const std::vector<FarRow> &rows);
template <typename T>
void unpack(const void *bytes, std::size_t size, std::int32_t k, FarRows<T> &rows);

// relocate_by_farthest() over the rows of all peers, which all make the same choice: farthest(most) returns this
// one's. `points` and `problem` are this one's, masses those of all.
template <typename T>
void relocate_by_farthest_of_peers(const PgkmPoints &points, const PgkmProblem &problem, std::vector<Int128> &masses,
                                   const std::function<std::vector<FarRow>(std::size_t most)> &farthest,
                                   const MoveRows &move);

} // namespace pgkm
