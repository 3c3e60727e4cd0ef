// hamerly.hpp - bounds that outlive an iteration, and short lists of centroids.
//
// Methods: Hamerly 2010 (one upper and one lower bound per row: most rows need no distance at all
// once the centroids move little) and Newling and Fleuret 2016, "exponion" (a row within u of
// centroid a can only belong to centroids within 2u of a). Rows that need another look are gathered
// by their centroid, so that the rows of a block share one list and lanes still run over points. In
// the first iteration the nearest of a few centroids that lie apart takes the part of a. When to
// use: more than one iteration, or clusters that lie apart; blocks whose list is nearly everything
// go to the filter (tiled.hpp). Where the filter is quick, it is faster than lists: all rows that need another look go
// to it.
#pragma once

#include <memory>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/assign/direct.hpp"
#include "cpu/assign/geometry.hpp"
#include "cpu/assign/own_distances.hpp"
#include "cpu/assign/tiled.hpp"
#include "cpu/kernels/list_kernels.hpp"

namespace pgkm::cpu {

template <typename T>
class Hamerly final : public Assigner<T> {
  public:
    Hamerly(const Rows<T> &rows, Purpose purpose);
    Assignment strategy() const override { return Assignment::hamerly; }
    int rows_at_once() const override { return rows_at_once_; }
    void begin(const T *centroids) override;
    void assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances) override;

  private:
    static constexpr int width = block_step;
    // Rows after which a worker judges whether lists spare enough of the centroids, and exact upper bounds enough rows.
    static constexpr std::int64_t trial_rows = 2048;

    struct Scratch {
        Scratch(Budget &budget, std::int32_t d, std::int32_t k, int rows_at_once);
        Buffer<double> block;               // d x width
        Buffer<double> best, second, label; // width
        Buffer<std::int32_t> list;          // centroids of a block
        Buffer<std::int32_t> active;        // rows of the block to look at
        Buffer<std::int32_t> sorted;        // the same by centroid
        Buffer<std::int32_t> start;         // where a centroid's rows begin in it
        Buffer<std::int32_t> dense;         // rows put aside for the filter
        int dense_count = 0;
        std::int64_t tried = 0;  // rows whose upper bound was made exact since begin()
        std::int64_t kept = 0;   // of them those that had to be searched all the same
        std::int64_t looked = 0; // rows in blocks since begin()
        std::int64_t passed = 0; // of them to the filter
    };

    int screen(Scratch &scratch, std::int64_t first, int count, const std::int32_t *labels);
    int tighten(Scratch &scratch, std::int64_t first, int active, const std::int32_t *labels);
    void assign_by_lists(Scratch &scratch, std::int64_t first, int count, std::int32_t *labels);
    void label_by_pivots(Scratch &scratch, std::int64_t first, int count, std::int32_t *labels);
    void sort_by_label(Scratch &scratch, int count, const std::int32_t *labels) const;
    void assign_block(Scratch &scratch, std::int64_t first, const std::int32_t *rows, int count, std::int32_t a,
                      std::int32_t *labels);
    void search(Scratch &scratch, int lanes, const std::int32_t *list, int listed);
    void filter(int worker, std::int64_t first, const std::int32_t *rows, int count, std::int32_t *labels);
    // Whether rows meet lists of centroids, as they did enough to gain by.
    bool has_lists(const Scratch &scratch) const;

    Rows<T> rows_;
    int rows_at_once_;
    const ListKernels &kernels_;
    const ExactKernels &exact_;
    Geometry<T> geometry_;
    std::unique_ptr<Tiled<T>> tiled_; // NULL where lists of everything are no slower
    Buffer<float> upper_, lower_;
    std::vector<Scratch> scratch_;
    std::vector<std::int32_t> pivots_;
    const T *centroids_ = nullptr;
    bool first_ = true;
    bool lists_ = true; // whether rows meet lists of centroids before the filter
};

} // namespace pgkm::cpu
