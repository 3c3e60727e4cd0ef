// tiles.hpp - the rows of a problem in groups around chosen rows, cut into tiles: which rows may a candidate win?
//
// Two tests pass rows over. By the triangle inequality a candidate wins no row of a tile whose rows lie too far from
// it. In the other tiles a filter compares the rows as 16-bit integers (cpu/encode/int16.hpp), taken about the chosen
// row that the group is nearest to, with the candidates. Both are proved in tiles.cpp. What they leave is settled by
// exact distances.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/encode/int16.hpp"
#include "cpu/seed/row_order.hpp"
#include "cpu/seed/runner.hpp"

namespace pgkm::cpu {

inline constexpr int seed_tile_rows = tiled_width;
// Tiles that a thread takes at once in a step.
inline constexpr std::int64_t seed_task_tiles = 32;

// The rows of a group are nearest to one chosen row, the parent, when the groups are made; a group is how integers are
// made of them, about the parent.
struct SeedTile {
    std::int32_t group = 0;
    std::int32_t count = 0;    // rows, at most seed_tile_rows
    double nearest_row = 0.0;  // distance of the parent to the nearest row, rounded down
    double farthest_row = 0.0; // to the farthest, rounded up
    double worst = 0.0;   // the largest distance of a row to its nearest chosen row, rounded up; 0: none is left to win
    double largest = 0.0; // the largest weight * squared distance to the nearest chosen row
    float residual = 0.0f; // the largest that was measured of its rows' integers
    bool is_open = false;  // float32 does not hold all rows: there are no integers
};

// Bounds on true distances from a computed squared one (tiles.cpp).
class DistanceBounds {
  public:
    explicit DistanceBounds(std::int32_t d);
    double below(double square) const;
    double above(double square) const;

  private:
    double share_;
};

template <typename T>
class SeedTiles {
  public:
    // Squares are of points of d features each, no two of which are nearer than their rows less `error`.
    SeedTiles(const BlockRunner &runner, const SeedRows<T> &rows, std::int32_t d, double error);

    // Groups the rows by `labels`, which name rows of `chosen` (these stay the caller's); `own` has the squared
    // distances to those, `nearest` those to the nearest of all chosen rows.
    void group(const T *const *chosen, std::int32_t n_chosen, const std::int32_t *labels, const double *own,
               const double *nearest);

    // What is allocated after the tiles, beside the rows that trials win: each worker's block here and its view, and
    // the gains by task in SeedTrials.
    std::uint64_t bytes_beside() const;
    std::int64_t size() const { return count_; }
    const SeedTile &operator[](std::int64_t tile) const { return tiles_[tile]; }
    // The row at place i of a tile.
    std::int64_t row(std::int64_t tile, int i) const { return places_[tile * seed_tile_rows + i]; }

    // The squared distance of the row at place i of a tile to its nearest chosen row.
    double nearest(std::int64_t tile, int i) const { return nearest_[tile * seed_tile_rows + i]; }
    // Changes it.
    void lower(std::int64_t tile, int i, double square);
    // What is said of the whole tile, after lower().
    void refresh(std::int64_t tile);

    // Candidates as the rows of one group see them; each thread has its own.
    class View {
      public:
        View(const SeedTiles &tiles, int most); // candidates at a time
        // Turns to these candidates, which stay the caller's.
        void look_at(const T *const *candidates, int count);
        // Finds which of the tile's rows each candidate may win: calls hit(candidate, bits, gain) where there are any;
        // gain bounds, if it is wanted, what it takes from weight * squared distance, summed over the tile's rows.
        template <typename Hit>
        void find(std::int64_t tile, bool want_gain, Hit &&hit);

      private:
        void enter(std::int32_t group);
        void encode();
        void fill_panels(const int *near, int count);
        const std::int32_t *values_of(std::int64_t tile);
        Int16Distance distance_to(int candidate) const;
        GainBounds weigh(std::int64_t tile, std::uint64_t bits, const double *gains) const;

        const SeedTiles &tiles_;
        const T *const *candidates_ = nullptr;
        int count_ = 0;
        std::int32_t group_ = -1;
        std::vector<double> below_, above_, squares_; // distances of the candidates to the parent
        std::vector<Int16Centroid> about_;            // the candidates about the parent, as integers
        bool is_encoded_ = false;                     // in room_
        Int16Store panels_;                           // of those that are near a tile
        std::vector<int> filled_;                     // which these are
        Buffer<float> scores_;                        // of them
        Int16Room room_;
        std::unique_ptr<Int16Room> unkept_; // a tile, where its words are not kept
    };

  private:
    friend class View;
    void deal(std::int32_t n_chosen, const std::int32_t *labels, const double *own, const double *nearest);
    void fill(std::int64_t tile, const double *own, const double *nearest, Int16Room &room);
    float encode(std::int64_t tile, Int16Room &room) const;
    bool can_compare(const SeedTile &tile) const { return filters_ && !tile.is_open; }
    std::int64_t pairs() const { return (rows_.d + 1) / 2; }
    // The tile's rows as integers, which lie at `values`.
    Int16Block block(std::int64_t tile, const std::int32_t *values) const
    {
        const std::int64_t first = tile * seed_tile_rows;
        return {values, units_.data() + first, squares_.data() + first};
    }

    const BlockRunner &runner_;
    const Int16Kernels &kernels_;
    SeedRows<T> rows_;
    DistanceBounds bounds_;
    double error_;
    bool filters_;           // integers hold the products
    std::int64_t count_ = 0; // tiles
    std::vector<Int16Code<T>> groups_;
    Buffer<SeedTile> tiles_;
    Buffer<RowNumber> places_;      // tiles x seed_tile_rows
    Buffer<double> nearest_;        // once more, in the order of places
    Buffer<float> limits_;          // the score of a candidate that wins a row, at most
    Buffer<float> units_, squares_; // of the rows as integers
    Buffer<std::int32_t>
        values_; // the integers, tiles x pairs() x seed_tile_rows; empty where memory does not allow them
};

} // namespace pgkm::cpu

#include "cpu/seed/tiles-inl.hpp"
