// different_centroids.hpp - the different ones among k centroids: of equal ones only the first can be the nearest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cpu/rows.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {

template <typename T>
class DifferentCentroids {
  public:
    DifferentCentroids(Budget &budget, std::int32_t k) : ids_(budget, k), has_twin_(budget, k, 0) {}

    // values: k x d; they stay the caller's.
    void set(const Rows<T> &rows, const T *values)
    {
        values_ = values;
        d_ = rows.d;
        std::vector<std::uint64_t> keys(rows.k);
        rows.for_ranges(rows.k, std::max(1, 65536 / d_), [&](std::int64_t j, std::int64_t last, int) {
            for (; j < last; ++j)
                keys[j] = row_key(values + j * d_, d_);
        });
        std::vector<std::int32_t> order(rows.k);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(),
                  [&](std::int32_t a, std::int32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
        std::vector<char> is_later(rows.k, 0);
        std::fill(has_twin_.begin(), has_twin_.end(), 0);
        std::int32_t first = 0;
        for (std::int32_t i = 1; i < rows.k; ++i) {
            const std::int32_t a = order[first], b = order[i];
            if (keys[a] == keys[b] && compare_content(at(a), at(b), d_) == 0)
                is_later[b] = has_twin_[b] = has_twin_[a] = 1;
            else
                first = i;
        }
        count_ = 0;
        for (std::int32_t j = 0; j < rows.k; ++j)
            if (is_later[j] == 0)
                ids_[count_++] = j;
    }

    std::int64_t count() const { return count_; }
    const T *operator[](std::int64_t j) const { return at(ids_[j]); }
    // The number among all k, ascending, the lowest of its twins.
    std::int32_t id(std::int64_t j) const { return ids_[j]; }
    bool has_twin(std::int32_t id) const { return has_twin_[id] != 0; }

  private:
    const T *at(std::int64_t id) const { return values_ + id * d_; }

    const T *values_ = nullptr;
    std::int32_t d_ = 0;
    std::int64_t count_ = 0;
    Buffer<std::int32_t> ids_;
    Buffer<char> has_twin_;
};

} // namespace pgkm::cpu
