// wide_centroids.hpp - centroids in float64, which holds either type, as exact_kernels.hpp wants them.
#pragma once

#include <algorithm>
#include <limits>

#include "cpu/kernels/exact_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

class WideCentroids {
  public:
    WideCentroids(Budget &budget, std::int32_t k, std::int32_t d) : values_(budget, (std::int64_t{k} + list_panel) * d)
    {
        std::fill(values_.end() - list_panel * d, values_.end(), std::numeric_limits<double>::infinity());
    }

    // centroids: k x d. On the pool of `rows`.
    template <typename T>
    void set(const T *centroids, const Rows<T> &rows)
    {
        rows.for_ranges(std::int64_t{rows.k} * rows.d, 65536, [&](std::int64_t first, std::int64_t last, int) {
            std::copy(centroids + first, centroids + last, values_.data() + first);
        });
    }

    // Rows of d: k, and list_panel at infinity, to fill up panels.
    const double *data() const { return values_.data(); }

  private:
    Buffer<double> values_;
};

} // namespace pgkm::cpu
