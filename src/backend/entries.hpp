// entries.hpp - what the backends share where rows repeat: how many differ, as a sample tells, and a call over the rows
// that differ (entries) in place of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "backend/backend.h"

namespace pgkm {

// Rows by entries at least: what is expected before entries are made, and what was found.
inline constexpr double expected_copies = 4.0;
inline constexpr std::int64_t least_copies = 2;
// Passes of a fit that nobody knows the end of.
inline constexpr double expected_iterations = 10.0;

// How many rows differ, from a sample of them (Chao 1984). With u contents in it, f1 of them once and f2 twice,
// u + f1 (f1 - 1) / (2 (f2 + 1)): near where rows repeat about equally often.
class DistinctGuess {
  public:
    static constexpr std::int64_t most_sampled = 1 << 15;

    // A row of the sample, which equals so many of those before it.
    void add(std::uint32_t before)
    {
        ++rows_;
        contents_ += before == 0 ? 1 : 0;
        once_ += before == 0 ? 1 : before == 1 ? -1 : 0;
        twice_ += before == 1 ? 1 : before == 2 ? -1 : 0;
    }
    // Infinity where too few of the sample repeat to tell.
    double distinct() const
    {
        if (rows_ - contents_ < least_repeated)
            return std::numeric_limits<double>::infinity();
        return static_cast<double>(contents_) +
               static_cast<double>(once_) * static_cast<double>(once_ - 1) / (2.0 * static_cast<double>(twice_ + 1));
    }

  private:
    static constexpr std::int64_t least_repeated = 8; // fewer say nothing
    std::int64_t rows_ = 0, contents_ = 0, once_ = 0, twice_ = 0;
};

// Calls body(&own) with a copy of the problem, of so many rows. What it writes becomes the problem's when it returns;
// whatever it throws leaves the problem as it was. centroids: room for those that it changes (of a fit), else none.
template <typename Problem, typename Body>
void on_copy(Problem &problem, std::int64_t n_rows, std::span<std::byte> centroids, Body &&body)
{
    PgkmProblem own = problem;
    own.n_rows = n_rows;
    if (!centroids.empty()) {
        std::memcpy(centroids.data(), problem.centroids, centroids.size());
        own.centroids = centroids.data();
    }
    body(&own);
    if (!centroids.empty())
        std::memcpy(problem.centroids, centroids.data(), centroids.size());
    if constexpr (!std::is_const_v<Problem>) {
        own.n_rows = problem.n_rows;
        own.centroids = problem.centroids;
        problem = own;
    }
}

} // namespace pgkm
