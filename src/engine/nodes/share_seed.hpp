// share_seed.hpp - seeding, as far as one server's rows are concerned: masses by key, draws' rows, distances to chosen
// rows. Which rows are chosen is decided where all servers' answers meet (seeder.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nodes/share.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// By which integers rows are drawn.
enum class Mass : std::int32_t {
    one,    // each row counts 1
    weight, // its weight, quantised with the exponent
    square  // weight times squared distance to the nearest chosen row, quantised with the exponent
};

template <typename T>
struct Seeding;

template <typename T>
class ShareSeed {
  public:
    ShareSeed(Session &session, const PgkmPoints &points, ShareState &state, const PgkmOpen &open)
        : session_(session), points_(points), state_(state), open_(open)
    {
    }

    void serve(Operation operation, Reader &request, Writer &reply);

  private:
    void begin(Reader &request);
    void sums(Reader &request, Writer &reply);
    void keys(Reader &request, Writer &reply);
    void rows(Reader &request, Writer &reply);
    void last(Writer &reply);
    void add(Reader &request, Writer &reply);
    void gains(Reader &request, Writer &reply);
    void exact_gains(Reader &request, Writer &reply);
    void choose(Reader &request, Writer &reply);
    void masses(Reader &request, Writer &reply);
    Seeding<T> &seeding();
    void meet(const std::vector<T> &rows, std::int32_t first);
    std::vector<UInt128> gains_on_device(const std::vector<T> &values);

    Session &session_;
    const PgkmPoints &points_;
    ShareState &state_;
    const PgkmOpen &open_;
};

} // namespace pgkm::nodes
