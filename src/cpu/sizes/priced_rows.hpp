// priced_rows.hpp - the rows of a problem in canonical order, and what they cost in each cluster.
//
// A row costs its squared distance to the centroid, exact_distance(), plus the cluster's price. Places are those of the
// canonical order (numeric/row_key.hpp), so that nothing here or above depends on the order in which rows came. Since
// that order goes by a hash, the first places are a fair sample of all.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/assign/wide_centroids.hpp"
#include "cpu/kernels/exact_kernels.hpp"
#include "cpu/memory.hpp"
#include "cpu/rows.hpp"
#include "cpu/seed/row_order.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

template <typename T>
class PricedRows {
  public:
    PricedRows(const Rows<T> &rows, const RowNumber *order);

    std::int64_t n() const { return rows_.n; }
    std::int32_t k() const { return rows_.k; }
    void poll() const { rows_.context.poll(); }
    Budget &budget() const { return rows_.context.budget; }
    InstructionSet instruction_set() const { return rows_.context.instruction_set; }

    // Places are those of another array from now on.
    void set_order(const RowNumber *order) { order_ = order; }

    // k x d; they stay the caller's.
    void set_centroids(const T *centroids);

    // by_row[i] = by_place[the place of row i], of n.
    void put_by_row(const std::int32_t *by_place, std::int32_t *by_row) const;

    // Of the first `count` places: labels[i] becomes the cluster where the row costs least, the lowest of several, and
    // squares[i] its squared distance.
    void assign(std::int64_t count, const std::vector<double> &prices, std::int32_t *labels, double *squares);

    // floors[j * k + l] becomes the least of what members[j], places of squares[i], would cost more in cluster l;
    // infinity where there are none.
    void find_floors(const std::vector<std::vector<std::int64_t>> &members, const double *squares, double *floors);

    // Squared distances of these places to one centroid.
    void distances_to(std::int32_t cluster, const std::vector<std::int64_t> &places, double *squares) const;

    // Squared distances of one place to all k centroids.
    void distances_of(std::int64_t place, double *squares) const;

  private:
    // Room of a worker: a tile of rows by feature, its distances to some centroids.
    struct Scratch {
        Buffer<double> block, distances, floors;
    };

    // Calls body(worker, first, size, cluster, distances) for tiles of rows and each cluster, ascending: those of
    // place(first) to place(first + size - 1).
    template <typename Place, typename Begin, typename Body, typename End>
    void for_tiles(std::int64_t count, Place &&place, Begin &&begin, Body &&body, End &&end);

    const Rows<T> rows_;
    const RowNumber *order_;
    const T *centroids_ = nullptr; // k x d
    const ExactKernels &kernels_;
    WideCentroids wide_; // the same
    std::vector<Scratch> scratch_;
};

} // namespace pgkm::cpu
