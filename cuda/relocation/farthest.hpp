// farthest.hpp - the rows that lie farthest from their centroids, for clusters that have none.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/context.hpp"
#include "backend/update.hpp"
#include "device/view.cuh"

namespace pgkm::cuda {

// A row that was found, as the device writes it.
struct FoundRow {
    double square;
    std::int32_t row; // of its slice
    std::int32_t label;
};

// The least key that is taken, and how many rows have that or more.
struct FarthestBound {
    unsigned long long key;
    std::int64_t rows;
};

// The `most` first rows in FarOrder of all slices added, which may have `most_rows` each (below 2^31).
template <typename T>
class FarthestRows {
  public:
    FarthestRows(Context &context, const FarOrder<T> &before, std::size_t most, std::size_t most_rows);

    // Memory that one takes, of the device and of the host.
    static std::uint64_t bytes(std::size_t most, std::size_t most_rows, std::int32_t d);
    static std::uint64_t host_bytes(std::size_t most, std::size_t most_rows);

    // Rows of the problem's from `first` on, whose squared distances and labels lie on the device, too; waits for the
    // compute stream, with Context::wait()'s look at the cancel.
    void add(const View<T> &rows, const double *squares, const std::int32_t *labels, std::int64_t first);

    const std::vector<FarRow> &rows() const { return found_.rows(); }

  private:
    std::vector<std::uint32_t> count(const double *squares, std::int64_t n, unsigned long long prefix, int shift);
    FarthestBound find_bound(const double *squares, std::int64_t n);
    int blocks(std::int64_t n) const;

    Context &context_;
    std::size_t most_;
    const PgkmPoints &points_; // the host's
    std::int64_t first_row_;   // of the problem's in them
    DeviceArray<std::uint32_t> counts_;
    DeviceArray<FoundRow> rows_;
    DeviceArray<T> last_; // d: the last row of those found
    FirstFarRows<T> found_;
};

} // namespace pgkm::cuda
