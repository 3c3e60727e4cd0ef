// tournament.hpp - rows for clusters that have none, chosen and placed on the device, where all rows lie there.
//
// The choice is sequential: for each empty cluster, in ascending order, the farthest row that may still go
// (relocate_empty_clusters() of the engine). So that each step costs little, rows are in tiles, of which each
// has its farthest row ready, and tiles are in groups that have theirs: one block takes the farthest of all,
// and only the tile that it came from, and that tile's group, are looked at again.
#pragma once

#include "fit/job.hpp"

namespace pgkm::cuda {

// A row of a tile at some squared distance from its centroid; at none: no row is left.
struct FarPlace {
    double       square;
    std::int32_t at; // its number in the tile
    std::int32_t label;
};

// Rows of a problem in tiles.
struct FarTiles {
    FarPlace    *farthest; // of each tile
    std::int64_t n;
    std::int32_t tile_rows;
    std::int32_t count;

    __host__ __device__ std::int64_t first_row(std::int32_t tile) const { return std::int64_t{tile} * tile_rows; }
    __host__ __device__ std::int32_t rows(std::int32_t tile) const
    {
        const std::int64_t rest = n - first_row(tile);
        return static_cast<std::int32_t>(rest < tile_rows ? rest : tile_rows);
    }
};

// Finishes iterations that stopped for an empty cluster. The host only enqueues it.
template <typename T>
class Tournament {
  public:
    // `job` is of resident rows and outlives it. PGKM_LIMIT where the device's limit leaves no room for all rows'
    // labels.
    Tournament(Job<T> &job, const PgkmFitParams &params);

    // Enqueues the rest of the iteration that stopped with `empty_cluster`: labels, the rows' move, new centroids, and
    // the decision, as update() takes it; clusters that found no row keep their centroids. The next iteration begins
    // anew (Job::begin_anew), whatever the control says: after a cancel nothing of this one is left but centroids.
    void enqueue(const UpdateArguments<T> &arguments);

  private:
    Job<T>                   &job_;
    const PgkmFitParams      &params_;
    FarTiles                  tiles_{};
    DeviceArray<std::int32_t> labels_; // of all rows, where the job's are of some
    DeviceArray<FarPlace>     farthest_;
    DeviceArray<std::int32_t> differ_; // 1: a row's label is another than in the iteration before
};

} // namespace pgkm::cuda
