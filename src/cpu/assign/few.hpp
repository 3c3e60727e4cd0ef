// few.hpp - few centroids, many features: each row as it lies is compared with all of them.
//
// Method: distances of the rows' own precision, whose error is bounded (pair_kernels.hpp); exact ones where these leave
// more than one centroid. When to use: rows of which a filter would have to be packed, or read once more, for a few
// products. It serves Hamerly, which brings it the rows that its bounds leave.
#pragma once

#include "cpu/assign/bounds_of_rows.hpp"
#include "cpu/kernels/pair_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

template <typename T>
class Few {
  public:
    explicit Few(const Rows<T> &rows)
        : rows_(rows), pairs_(pair_kernels(rows.context.instruction_set)), square_bounds_(rows.d)
    {
    }

    // centroids: k x d, unchanged until the next begin().
    void begin(const T *centroids) { centroids_ = centroids; }

    // Labels and bounds of listed rows; count <= most_rows.
    void assign_block(const std::int64_t *rows, int count, std::int32_t *labels, const Bounds &bounds) const;

    static constexpr int most_rows = 64, most_centroids = 16;

  private:
    struct Pairs;
    int compare(const std::int64_t *rows, int count, std::int32_t *labels, double *most, double *least,
                Pairs &pairs) const;

    Rows<T> rows_;
    const PairKernels &pairs_;
    const SquareBounds<T> square_bounds_;
    const T *centroids_ = nullptr;
};

} // namespace pgkm::cpu
