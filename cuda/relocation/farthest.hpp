// farthest.hpp - the rows that lie farthest from their centroids, for clusters that have none.
#pragma once

#include <cstdint>
#include <utility>
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

// What the kernels tell the host.
struct FarthestAnswers {
    std::uint32_t n_rows;     // taken
    std::uint32_t model;      // the lowest of the tied rows
    std::uint32_t difference; // the first feature in which a tied row differs from the model
};

// The least key that is taken; `left` of the keys that equal it, or all where left is 0.
struct FarthestBound {
    unsigned long long key;
    std::int64_t left;
};

// The `most` first rows in FarOrder of all slices added, which may have `most_rows` each (below 2^31).
template <typename T>
class FarthestRows {
  public:
    FarthestRows(Context &context, const FarOrder<T> &before, std::size_t most, std::size_t most_rows);

    // Device memory that one takes.
    static std::uint64_t bytes(std::size_t most, std::size_t most_rows);

    // Rows first .. first + rows.n - 1, whose squared distances and labels lie on the device; waits for the
    // compute stream, with Context::wait()'s look at the cancel.
    void add(const View<T> &rows, const double *squares, const std::int32_t *labels, std::int64_t first);

    std::vector<FarRow> take() { return std::move(found_); }

  private:
    template <typename Key>
    std::vector<std::uint32_t> count(const Key &key, std::int64_t n, unsigned long long prefix, int shift);
    template <typename Key>
    FarthestBound find_bound(const Key &key, std::int64_t n, std::int64_t wanted);
    template <typename Key>
    std::int64_t narrow(const Key &key, std::int64_t n, std::int64_t wanted);
    void settle_ties(const View<T> &rows, std::int64_t wanted);
    std::int32_t next_difference(const View<T> &rows, std::int32_t first);
    FarthestAnswers answers();
    int blocks(std::int64_t items, int per_block) const;

    Context &context_;
    FarOrder<T> before_;
    std::size_t most_;
    DeviceArray<std::uint32_t> counts_;
    DeviceArray<FoundRow> rows_;
    DeviceArray<std::uint8_t> states_;
    DeviceArray<FarthestAnswers> answers_;
    std::vector<FarRow> found_;
};

} // namespace pgkm::cuda
