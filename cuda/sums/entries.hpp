// entries.hpp - rows that enter sums or leave them, in the order of their clusters: what sorted.cu adds up.
#pragma once

#include "device/carver.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {

// A row and the cluster whose sums it enters; row < 0: ~row leaves them.
struct Entry {
    std::int32_t row;
    std::int32_t cluster;
};

struct EntryCounts {
    std::uint32_t moved;   // entries of rows whose label changed
    std::uint32_t arrived; // blocks
};

// Device memory for the entries of one call.
struct Entries {
    EntryCounts *counts;
    std::uint32_t *cursors; // clusters
    Entry *list;            // as many as there are rows
    // Labels of the rows as the sums have them, -1: a row is in no sum. nullptr: no row is, and all enter.
    std::int32_t *last;
};

// Most rows of one call.
inline constexpr std::int64_t most_entries = std::int64_t{1} << 30;

// Entries of so many rows and clusters, and their bytes. follow: sums follow the rows, whose labels are `last`.
Entries carve_entries(Carver &carver, std::int64_t rows, std::int32_t k, bool follow);
std::size_t entry_bytes(std::int64_t rows, std::int32_t k, bool follow);

// Whether all rows enter the sums anew: by fewer entries than if those whose label changed moved.
__device__ inline bool enter_all(const Entries &entries, std::int64_t rows)
{
    return entries.last == nullptr || entries.counts->moved > rows;
}

__device__ inline int entry_count(const Entries &entries, std::int64_t rows)
{
    return static_cast<int>(enter_all(entries, rows) ? rows : entries.counts->moved);
}

// Enqueues: the entries that take the sums from entries.last to `labels`, which entries.last becomes. Where all rows
// enter anew, what is in `sums` goes.
template <typename T>
void sort_entries(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, const Entries &entries,
                  const Accumulators &sums);

} // namespace pgkm::cuda
