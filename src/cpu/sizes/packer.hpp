// packer.hpp - whole rows in clusters of bounded weight: what is too much moves, and what makes it cheaper.
//
// Whether whole rows can keep within the bounds at all is the question of bin packing, which is NP-hard. So this is a
// search: a row moves to another cluster, or two rows change places, as long as clusters keep within their bounds
// better by that; the cheapest such step of those that mend most of what is wrong with the worst cluster. If no step is
// left, it begins anew with the heaviest rows first, each where most room is, or where least room is left. At last,
// where rows and clusters are not too many, such steps are taken as long as one makes the assignment cheaper within the
// bounds.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cpu/sizes/priced_rows.hpp"

namespace pgkm::cpu {

template <typename T>
class Packer {
  public:
    // bounds: k; amounts: of places, whose squared distances count so often.
    Packer(PricedRows<T> &rows, const PgkmSizeBounds *bounds, const std::int64_t *amounts);

    // labels, of places: the search begins there. Returns by how much the bounds are missed, 0 if they are kept.
    std::int64_t pack(std::int32_t *labels);

    // Makes an assignment cheaper that keeps within the bounds.
    void improve(std::int32_t *labels);

    // Of any assignment.
    double cost(const std::int32_t *labels);

  private:
    // A row that may move to the other cluster of a pair, or none; what that costs.
    struct Row {
        std::int64_t amount;
        double cost;
        std::int64_t place; // below 0: none
    };
    // What goes from one cluster to another, and what comes from there.
    struct Step {
        double cost = std::numeric_limits<double>::infinity();
        std::int64_t out = -1, in = -1;
        std::int32_t to = 0;
    };

    void begin(const std::int32_t *labels);
    void deal_out(bool evenly, std::int32_t *labels);
    std::int64_t missed(std::int32_t cluster) const;
    void list(std::int32_t from, std::int32_t to, bool any, std::vector<Row> &list);
    bool transfers(std::int32_t from, std::int32_t to, std::int64_t missed, std::int64_t *least,
                   std::int64_t *most) const;
    Step cheapest(std::int64_t least, std::int64_t most) const;
    void take(std::int32_t from, const Step &step);
    void put(std::int64_t place, std::int32_t from, std::int32_t to);
    std::int64_t mend();
    void take_all(std::int32_t *labels);

    PricedRows<T> &rows_;
    const PgkmSizeBounds *bounds_;
    const std::int64_t *amounts_;
    const Reservation reservation_;
    std::vector<std::vector<std::int64_t>> members_; // places of each cluster
    std::vector<std::int64_t> loads_;
    std::vector<double> squares_, room_; // of places
    std::vector<Row> out_, in_;          // of a pair, by amount
    double cost_ = 0.0;                  // of the assignment that a search began with
};

} // namespace pgkm::cpu
