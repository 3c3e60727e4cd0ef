// balancer.hpp - the cheapest assignment of rows to given centroids with all sizes within their bounds.
//
// With the right price for each cluster every row lies where its squared distance plus the price is least, and sizes
// are within their bounds. Prices last from one call to the next. Where they are far off, they are found first for a
// quarter of the rows, in the same way, with bounds of a quarter. What is left then is moved row by row (network.hpp).
//
// Rows that have weights count by these. The cheapest assignment may divide some rows among clusters then, fewer than
// there are clusters but for ties. They are put together again (packer.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cpu/sizes/network.hpp"
#include "cpu/sizes/priced_rows.hpp"

namespace pgkm::cpu {

template <typename T>
class Balancer : private RowCosts {
  public:
    // order: the rows in canonical order; bounds: k, of rows or of units of weight (backend/size_units.hpp).
    Balancer(const Rows<T> &rows, const RowNumber *order, const PgkmSizeBounds *bounds, int size_exponent);

    // labels[i], of n: the cluster of row i, for these centroids (k x d).
    void assign(const T *centroids, std::int32_t *labels);

  private:
    std::vector<Move> moves(std::int32_t from, std::int32_t to) override;
    std::int64_t move(std::int64_t place, std::int32_t to, std::int64_t amount) override;
    const std::vector<double> &costs() const override { return costs_; }
    std::int64_t amount(std::int64_t place) const override
    {
        return amounts_.size() == 0 ? 1 : amounts_[static_cast<std::size_t>(place)];
    }
    std::int32_t label(std::int64_t place) const override { return labels_[static_cast<std::size_t>(place)]; }
    void hold(std::int64_t bytes) override;
    void poll() const override { rows_.poll(); }

    void weigh(const Rows<T> &rows, const RowNumber *order);
    std::int64_t amount_of(std::int64_t count) const;
    std::int64_t row_of(std::int64_t place) const;
    std::int64_t part_in(std::int64_t row, std::int32_t cluster) const;
    std::int64_t new_part(std::int64_t row);
    bool put_together();
    void settle_whole_rows();
    std::vector<PgkmSizeBounds> bounds_of(std::int64_t count) const;
    void forget_small_prices();
    Network begin(std::int64_t count);
    void find_prices(std::int64_t count);

    PricedRows<T> rows_;
    std::vector<PgkmSizeBounds> bounds_; // k
    const int size_exponent_;
    Buffer<RowNumber> order_; // with weights: of places, those of parts of rows last
    Buffer<std::int64_t> amounts_;
    std::int64_t unit_ = 0;                                     // what an amount of 1 stands for
    std::vector<std::int64_t> parts_;                           // the row of each part, by its place
    std::map<std::int64_t, std::vector<std::int64_t>> divided_; // the parts of each row that has some
    Buffer<std::int32_t> kept_;                                 // with weights: the last labels; none before the first
    std::vector<double> prices_;                                // k
    Buffer<std::int32_t> labels_;                               // of places
    Buffer<double> squares_, room_;
    Buffer<double> floors_; // k x k
    // Of the rows at work, the places that came to each cluster; some may have left.
    std::vector<std::vector<std::int64_t>> members_;
    std::vector<double> costs_; // k
    std::uint64_t held_ = 0;    // bytes of the network
};

} // namespace pgkm::cpu
