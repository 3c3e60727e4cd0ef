// plan.hpp (moments) - how the sums of PCA are cut into blocks: a pure function of the problem's shape and the
// device.
//
// The lower triangle of the d x d matrix is cut into squares of `square_side` features. A thread block takes one square
// and one segment of the rows. A segment is every `segments`th stage of rows, so that a chunk of rows on its way
// through the device feeds all segments alike, and the additions come in the same order whatever the chunks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pgkm::cuda::moments {

inline constexpr int square_side = 128; // features

// Squares on the diagonal, and below it.
inline constexpr std::int64_t squares(int d)
{
    return (d + square_side - 1) / square_side;
}
inline constexpr std::int64_t squares_below(int d)
{
    return squares(d) * (squares(d) - 1) / 2;
}

// float64 values of one partial result: the lower triangle.
__host__ __device__ inline constexpr std::int64_t triangle(std::int64_t d)
{
    return d * (d + 1) / 2;
}

// Columns of 32 features of a square on the diagonal: all have four where there is more than one square.
inline constexpr int columns(int d)
{
    return d > square_side - 32 ? 4 : (d + 31) / 32;
}

// Shares of a block's warps that split a stage's rows among them, each with sums of its own: where a
// square's tiles of 32 x 32 are fewer than the warps of a block.
inline constexpr int row_shares(int columns)
{
    return columns == 1 ? 8 : columns == 2 ? 4 : columns == 3 ? 2 : 1;
}

// Rows that a block loads at a time.
inline constexpr int stage_rows(int columns)
{
    return columns == 1 ? 128 : columns == 2 ? 64 : 32;
}

// Segments that fill the multiprocessors about evenly: of the counts that partial sums of 128 MB allow
// and that leave at least four stages to each, the one of the least waves per row, the lowest of several.
inline std::int64_t segments(std::int64_t rows, int d, int multiprocessors)
{
    constexpr std::int64_t most_values = (std::int64_t{128} << 20) / 8;
    const std::int64_t stages = (rows + stage_rows(columns(d)) - 1) / stage_rows(columns(d));
    const std::int64_t memory = most_values / (triangle(d) * row_shares(columns(d)));
    const std::int64_t most = std::clamp<std::int64_t>(
        std::min({stages / 4, memory, std::int64_t{2} * multiprocessors}), 1, std::max<std::int64_t>(stages, 1));
    const auto cost = [&](std::int64_t count) {
        const auto waves = [&](std::int64_t blocks) {
            return static_cast<double>((blocks * count + multiprocessors - 1) / multiprocessors);
        };
        return (0.6 * waves(squares(d)) + waves(squares_below(d))) / static_cast<double>(count);
    };
    std::int64_t best = 1;
    for (std::int64_t count = 2; count <= most; ++count)
        if (cost(count) < cost(best) - 1e-9)
            best = count;
    return best;
}

} // namespace pgkm::cuda::moments
