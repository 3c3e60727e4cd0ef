// farthest.hpp - the rows that lie farthest from their centroids, for clusters that have none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plugin/context.hpp"
#include "backend/update.hpp"

namespace pgkm::cuda {

// A row that was found, as the device writes it.
struct FoundRow {
    double square;
    std::int32_t row; // of its slice
    std::int32_t label;
};

struct FarthestKeys;
struct FarthestBound;

// The `most` first rows in FarRow's order of all slices added, which may have `most_rows` each (below 2^31).
class FarthestRows {
  public:
    FarthestRows(Context &context, std::size_t most, std::size_t most_rows);

    // Device memory that one takes.
    static std::uint64_t bytes(std::size_t most, std::size_t most_rows);

    // Rows first .. first + n - 1, whose squared distances and labels lie on the device; waits for the
    // compute stream, with Context::wait()'s look at the cancel.
    void add(const double *squares, const std::int32_t *labels, std::int32_t n, std::int64_t first);

    std::vector<FarRow> take() { return std::move(found_); }

  private:
    std::vector<std::uint32_t> count(const FarthestKeys &keys, unsigned long long prefix, int shift);
    FarthestBound find_bound(const FarthestKeys &keys, std::int64_t wanted);

    Context &context_;
    std::size_t most_;
    DeviceArray<std::uint32_t> counts_;
    DeviceArray<FoundRow> rows_;
    DeviceArray<std::uint32_t> n_rows_;
    std::vector<FarRow> found_;
};

} // namespace pgkm::cuda
