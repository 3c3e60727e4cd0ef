// rows.hpp - rows spread over the places, and which places a problem's rows lie on.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/spread/places.hpp"

namespace pgkm::spread {

// Some rows of a problem, on one place.
struct Piece {
    std::size_t place;
    std::int64_t skip;   // rows of the problem before these
    PgkmProblem problem; // with rows as the place counts them
};

class Rows {
  public:
    // Each place gets as many, in order. Where there are fewer rows than places the last ones get none. Throws Error.
    Rows(Places &places, const PgkmPoints &points);
    ~Rows();
    Rows(const Rows &) = delete;
    Rows &operator=(const Rows &) = delete;

    Places &places() const { return places_; }
    const PgkmPoints &points() const { return points_; }
    std::size_t element_bytes() const { return points_.element == PGKM_FLOAT32 ? 4 : 8; }

    // In the order of the rows; one where all of them lie on one place.
    std::vector<Piece> pieces_of(const PgkmProblem &problem) const;
    // What the place has of them; brought back if it was lent away. NULL with *error.
    PgkmData *data(std::size_t place, PgkmError *error);

    // The problem's rows, brought together on a place; they stay there until others come or give_back().
    PgkmData *gather(std::size_t place, const PgkmProblem &problem, PgkmError *error);
    // Frees the place's own rows, to make room for those.
    void lend(std::size_t place);
    // Frees what was brought together, where it leaves little room for a fit.
    void give_back();

  private:
    struct Part {
        std::int64_t first = 0, n = 0;
        PgkmData *data = nullptr;
    };
    PgkmPoints slice(std::int64_t first, std::int64_t n) const;
    PgkmStatus load(std::size_t place, Part &part, std::int64_t first, std::int64_t n, PgkmError *error);

    Places &places_;
    PgkmPoints points_;
    std::vector<Part> parts_, gathered_; // of each place
};

} // namespace pgkm::spread
