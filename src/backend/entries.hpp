// entries.hpp - what the backends share where rows repeat: how many differ, as a sample tells, and a call over the rows
// that differ (entries) in place of all.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

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
    // How large a sample of n rows is: of rows of which each is there four times it has some 18 pairs.
    static std::int64_t sample_of(std::int64_t n)
    {
        constexpr std::int64_t most = 1 << 15;
        return std::min(static_cast<std::int64_t>(3.0 * std::sqrt(static_cast<double>(n))), most);
    }

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

// Calls body(own), which are copies of the problems over other rows. What it writes there becomes the problems' when it
// returns; whatever it throws leaves them as they were. Of a fit, row_bytes and room at `centroids` for those of all,
// which it changes; else 0.
template <typename Problem, typename Body>
void on_copies(Problem *problems, std::vector<PgkmProblem> &own, std::size_t row_bytes, std::byte *centroids,
               Body &&body)
{
    const auto bytes_of = [&](const PgkmProblem &one) { return static_cast<std::size_t>(one.k) * row_bytes; };
    if (row_bytes != 0)
        for (PgkmProblem &one : own) {
            std::memcpy(centroids, one.centroids, bytes_of(one));
            one.centroids = std::exchange(centroids, centroids + bytes_of(one));
        }
    body(own.data());
    for (std::size_t p = 0; p < own.size(); ++p) {
        if (row_bytes != 0)
            std::memcpy(problems[p].centroids, own[p].centroids, bytes_of(own[p]));
        if constexpr (!std::is_const_v<Problem>) {
            own[p].first_row = problems[p].first_row;
            own[p].n_rows = problems[p].n_rows;
            own[p].peers = problems[p].peers;
            own[p].centroids = problems[p].centroids;
            problems[p] = own[p];
        }
    }
}

} // namespace pgkm
