// part_seed.hpp - seeding, as far as one server's rows are concerned: masses by key, draws' rows, distances to chosen
// rows. Which rows are chosen is decided where all servers' answers meet (seeder.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/nodes/part.hpp"
#include "numeric/platform.hpp"

namespace pgkm::nodes {

// Buckets are told by at most so many bits of a key.
inline constexpr std::int32_t most_bucket_bits = 22;

// By which integers rows are drawn.
enum class Mass : std::int32_t {
    one,    // each row counts 1
    weight, // its weight, quantised with the exponent
    square, // weight times squared distance to the nearest chosen row, quantised with the exponent
    given   // PartState.given
};

template <typename T>
class PartSeed {
  public:
    PartSeed(Session &session, const PgkmPoints &points, PartState &state, std::int32_t threads, const PgkmHost &host)
        : session_(session), points_(points), state_(state), threads_(threads), host_(host)
    {
    }

    void serve(Operation operation, Reader &request, Writer &reply);

  private:
    void begin();
    void sums(Reader &request, Writer &reply);
    void keys(Reader &request, Writer &reply);
    void rows(Reader &request, Writer &reply);
    void last(Writer &reply);
    void add(Reader &request, Writer &reply);
    void gains(Reader &request, Writer &reply);
    void masses(Reader &request, Writer &reply);
    template <typename Body>
    void with_mass(Reader &request, Body &&body);
    const T *row(std::uint64_t i) const
    {
        return static_cast<const T *>(points_.values) + static_cast<std::int64_t>(i) * points_.d;
    }
    double weight(std::int64_t i) const { return points_.weights == nullptr ? 1.0 : points_.weights[i]; }
    void poll() const;

    Session &session_;
    const PgkmPoints &points_;
    PartState &state_;
    std::int32_t threads_;
    PgkmHost host_;
};

} // namespace pgkm::nodes
