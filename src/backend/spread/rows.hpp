// rows.hpp - rows spread over the contexts, and which contexts a problem's rows lie on.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/calls.hpp"
#include "backend/spread/contexts.hpp"

namespace pgkm::spread {

// Some rows of a problem, on one context.
struct Share {
    std::size_t context;
    std::int64_t skip;   // rows of the problem before these
    PgkmProblem problem; // with rows as the context counts them
};

class Rows {
  public:
    // Each context gets as many, in order. Where there are fewer rows than contexts the last ones get none. Throws
    // Error.
    Rows(Contexts &contexts, const PgkmPoints &points);
    ~Rows();
    Rows(const Rows &) = delete;
    Rows &operator=(const Rows &) = delete;

    Contexts &contexts() const { return contexts_; }
    const PgkmPoints &points() const { return points_; }
    RowShape shape() const { return shape_of(points_); }

    // In the order of the rows; one where all of them lie on one context.
    std::vector<Share> shares_of(const PgkmProblem &problem) const;
    // What the context has of them; loaded again after unload_own(). NULL with *error.
    PgkmData *data(std::size_t context, PgkmError *error);

    // The problem's rows, brought together on a context; they stay there until others come, or one of the next two
    // unloads them.
    PgkmData *gather(std::size_t context, const PgkmProblem &problem, PgkmError *error);
    void unload_gathered(std::size_t context);
    // Those of all contexts, where they leave little room for a fit, or where it is not known how much there is.
    void make_room_for_fit();
    // The context's own rows.
    void unload_own(std::size_t context);

  private:
    struct Run {
        std::int64_t first = 0, n = 0;
        PgkmData *data = nullptr;
    };
    PgkmStatus load(std::size_t context, Run &run, std::int64_t first, std::int64_t n, PgkmError *error);

    Contexts &contexts_;
    PgkmPoints points_;
    std::vector<Run> own_, gathered_; // of each context
};

} // namespace pgkm::spread
