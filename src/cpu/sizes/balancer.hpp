// balancer.hpp - the cheapest assignment of rows to given centroids with all sizes within their bounds.
//
// With the right price for each cluster every row lies where its squared distance plus the price is least, and sizes
// are within their bounds. Prices last from one call to the next. Where they are far off, they are found first for a
// quarter of the rows, in the same way, with bounds of a quarter. What is left then is moved row by row (network.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/sizes/network.hpp"
#include "cpu/sizes/priced_rows.hpp"

namespace pgkm::cpu {

template <typename T>
class Balancer : private RowCosts {
  public:
    // order: the rows in canonical order; bounds: k.
    Balancer(const Rows<T> &rows, const RowNumber *order, const PgkmSizeBounds *bounds);

    // labels[i], of n: the cluster of row i, for these centroids (k x d).
    void assign(const T *centroids, std::int32_t *labels);

  private:
    std::vector<Move> moves(std::int32_t from, std::int32_t to) override;
    const std::vector<double> &move(std::int64_t place, std::int32_t to) override;
    std::int32_t label(std::int64_t place) const override { return labels_[static_cast<std::size_t>(place)]; }
    void hold(std::int64_t bytes) override;
    void poll() const override { rows_.poll(); }

    std::vector<PgkmSizeBounds> bounds_of(std::int64_t count) const;
    void forget_small_prices();
    Network begin(std::int64_t count);
    void find_prices(std::int64_t count);

    PricedRows<T> rows_;
    const PgkmSizeBounds *bounds_; // k
    std::vector<double> prices_;   // k
    Buffer<std::int32_t> labels_;  // of places
    Buffer<double> squares_, room_;
    Buffer<double> floors_; // k x k
    // Of the rows at work, the places that came to each cluster; some may have left.
    std::vector<std::vector<std::int64_t>> members_;
    std::vector<double> costs_; // k
    std::uint64_t held_ = 0;    // bytes of the network
};

} // namespace pgkm::cpu
