// tiles.hpp - the rows of a problem in groups around chosen rows, cut into tiles: which rows may a candidate win?
//
// Two tests pass rows over. By the triangle inequality a candidate wins no row of a tile whose rows lie too far from
// it. In the other tiles a filter compares 16-bit copies of the rows, taken about the chosen row that the group is
// nearest to, with the candidates. Both are proved in tiles.cpp. What they leave is settled by exact distances.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/seed/row_order.hpp"
#include "cpu/seed/runner.hpp"
#include "cpu/seed/tile_kernels.hpp"

namespace pgkm::cpu {

// Tiles that a thread takes at once in a step.
inline constexpr std::int64_t seed_task_tiles = 32;

// The rows that were nearest to one chosen row, the parent, when the groups were made. Lengths in the group's own
// unit are lengths times `inverse`.
template <typename T>
struct SeedGroup {
    const T *parent;
    double inverse;
    bool narrow; // its rows may be centred in float32
};

struct SeedTile {
    std::int32_t group;
    std::int32_t count;  // rows, at most seed_tile_rows
    double nearest_row;  // distance of the parent to the nearest row, rounded down
    double farthest_row; // to the farthest, rounded up
    double worst;        // the largest distance of a row to its nearest chosen row, rounded up; 0: none is left to win
    double largest;      // the largest weight * squared distance to the nearest chosen row
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

    std::int64_t size() const { return count_; }
    const SeedTile &operator[](std::int64_t tile) const { return tiles_[tile]; }
    // The row at place i of a tile.
    std::int64_t row(std::int64_t tile, int i) const { return places_[tile * seed_tile_rows + i]; }

    // Bounds of what a candidate takes from weight * squared distance, summed over the tile's rows.
    GainBounds estimate(std::int64_t tile, std::uint64_t bits, const ScreenedCandidate &candidate) const;

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
        const T *candidate(int c) const { return candidates_[c]; }
        // Finds which of the tile's rows each candidate may win: calls hit(candidate, bits, screened) where there are
        // any; screened is NULL where nothing was compared.
        template <typename Hit>
        void find(std::int64_t tile, Hit &&hit);

      private:
        void enter(std::int32_t group);
        void turn(int candidate);
        const std::int32_t *values_of(std::int64_t tile);

        const SeedTiles &tiles_;
        const T *const *candidates_ = nullptr;
        int count_ = 0;
        std::int32_t group_ = -1;
        Buffer<std::int32_t> turned_; // most x pairs: the candidates about the parent, in units of their own
        Buffer<double> centred_;      // d
        Buffer<std::int32_t> packed_; // a tile, where no copies are kept
        Buffer<float> block_;
        std::vector<double> below_, above_, squares_; // distances of the candidates to the parent
        std::vector<ScreenedCandidate> screened_;
        std::vector<char> is_turned_;
    };

  private:
    friend class View;
    void deal(std::int32_t n_chosen, const std::int32_t *labels, const double *own, const double *nearest);
    void fill(std::int64_t tile, const double *own, const double *nearest);
    std::uint64_t bytes_with_copies() const;
    void pack(std::int64_t tile, float *block, std::int32_t *values, float *squares, float *lost) const;
    ScreenedTile about(std::int64_t tile) const
    {
        const std::int64_t first = tile * seed_tile_rows;
        return {squares_.data() + first, lost_.data() + first, limits_.data() + first};
    }

    const BlockRunner &runner_;
    const TileKernels &kernels_;
    SeedRows<T> rows_;
    DistanceBounds bounds_;
    double error_;
    double square_share_;    // of the filter's bound
    float gain_share_;       // of the bound of estimates
    bool filters_;           // integers hold the products
    std::int64_t count_ = 0; // tiles
    std::vector<SeedGroup<T>> groups_;
    Buffer<SeedTile> tiles_;
    Buffer<RowNumber> places_;     // tiles x seed_tile_rows
    Buffer<double> nearest_;       // once more, in the order of places
    Buffer<float> squares_, lost_; // of the copies: their squared lengths, and how far the rows are from them
    Buffer<float> limits_;         // the product with a candidate that a row must reach
    Buffer<std::int32_t> values_;  // the copies, two features to a word; empty where memory does not allow them
};

} // namespace pgkm::cpu

#include "cpu/seed/tiles-inl.hpp"
