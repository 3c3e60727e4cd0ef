// narrow.cpp - makes rows and centroids narrow, and turns scores into bounds on distances.
#include "cpu/assign/narrow.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pgkm::cpu {
namespace {

constexpr double unit = 0x1p-24; // of float32 rounding
constexpr double longest_centroid = 0x1p30;

double residual_above(double measured, double d)
{
    return measured * (1.0 + 2.0 * unit * (d + 4.0)) + 0.004 * std::sqrt(d) + 0.01;
}

// The square of (c - shift) * factor, by four sums.
template <typename T>
double centred_square(const T *c, const T *shift, std::int32_t d, double factor)
{
    const auto square = [&](std::int32_t f) {
        const double value = (static_cast<double>(c[f]) - static_cast<double>(shift[f])) * factor;
        return value * value;
    };
    double sums[4] = {};
    std::int32_t f = 0;
    for (; f + 4 <= d; f += 4)
        for (int i = 0; i < 4; ++i)
            sums[i] += square(f + i);
    for (; f < d; ++f)
        sums[0] += square(f);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double power_near(double length)
{
    int exponent = 0;
    if (length > 0.0 && std::isfinite(length))
        std::frexp(length, &exponent);
    return std::ldexp(1.0, std::clamp(exponent, -100, 100));
}

} // namespace

NarrowScratch::NarrowScratch(Budget &budget, int words)
    : rows(budget, std::int64_t{tiled_width} * words), block(budget, std::int64_t{tiled_width} * words)
{
}

template <typename T>
Narrow<T>::Narrow(const Rows<T> &rows, const T *shift, double length, bool keep)
    : rows_(rows), kernels_(narrow_kernels(rows.context.instruction_set)), shift_(shift), words_(narrow_words(rows.d)),
      unit_(power_near(length)), sum_error_(2.02 * unit * (rows.d + 4.0)),
      row_residual_(residual_above(0.505 * std::sqrt(static_cast<double>(rows.d)), rows.d))
{
    const std::int64_t panels = (rows.k + tiled_panel - 1) / tiled_panel;
    panels_ = Buffer<std::int32_t>(rows.context.budget, panels * tiled_panel * words_);
    start_ = Buffer<float>(rows.context.budget, panels * tiled_panel);
    scale_ = Buffer<float>(rows.context.budget, panels * tiled_panel);
    margin_ = Buffer<float>(rows.context.budget, panels * tiled_panel);
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(rows.n) * static_cast<std::uint64_t>(words_);
    constexpr std::uint64_t of_worker = 1 << 20; // room for what each worker allocates later
    if (!keep || rows.d > most_features ||
        !rows.context.budget.allows(bytes + of_worker * static_cast<std::uint64_t>(rows.pool.size())))
        return;
    try {
        kept_ = Buffer<std::int32_t>(rows.context.budget, rows.n * words_);
    } catch (const Error &error) { // other threads may have taken what room there was
        if (error.status() != PGKM_LIMIT)
            throw;
        return;
    }
    keep_rows();
}

template <typename T>
void Narrow<T>::keep_rows()
{
    std::vector<float> largest(rows_.pool.size(), 0.0f);
    for_blocks(rows_, tiled_width, [&](int worker, std::int64_t first, int count) {
        const T *points[tiled_width];
        for (int i = 0; i < count; ++i)
            points[i] = rows_.row(first + i);
        const float most = kernels_.narrow(points, count, rows_.d, shift_, 1.0 / unit_, kept_.data() + first * words_);
        largest[worker] = std::max(largest[worker], most);
    });
    const double most = static_cast<double>(*std::max_element(largest.begin(), largest.end()));
    row_residual_ = std::min(row_residual_, residual_above(most, rows_.d));
}

// Fills a panel and returns the length of its longest centroid; infinity where float32 does not hold it.
template <typename T>
double Narrow<T>::set_panel(const T *centroids, const std::int32_t *ids, std::int64_t count, std::int64_t panel)
{
    const int pairs = (rows_.d + 1) / 2;
    std::int32_t *values = panels_.data() + panel * tiled_panel * pairs;
    std::vector<std::int32_t> words(words_);
    double longest = 0.0;
    for (std::int64_t j = 0; j < tiled_panel; ++j) {
        const std::int64_t cluster = panel * tiled_panel + j;
        if (cluster >= count) { // one that only fills the last panel: it scores too high to be hit
            for (int p = 0; p < pairs; ++p)
                values[p * tiled_panel + j] = 0;
            start_[cluster] = 0x1p100f;
            scale_[cluster] = margin_[cluster] = 0.0f;
            continue;
        }
        const T *c = centroids + std::int64_t{ids[cluster]} * rows_.d;
        const double square = centred_square(c, shift_, rows_.d, 1.0 / unit_);
        const float residual = kernels_.narrow(&c, 1, rows_.d, shift_, 1.0 / unit_, words.data());
        NarrowRow about;
        std::memcpy(&about, words.data(), sizeof about);
        const double length = std::sqrt(square) * (1.0 + 0x1p-30);
        if (!(length < longest_centroid) || about.unit == 0.0f)
            return HUGE_VAL;
        longest = std::max(longest, length);
        for (int p = 0; p < pairs; ++p)
            values[p * tiled_panel + j] = words[narrow_head + p];
        const double lost = residual_above(static_cast<double>(residual), rows_.d) * static_cast<double>(about.unit);
        start_[cluster] = static_cast<float>(square / 2.0 * (1.0 - 16.0 * unit));
        scale_[cluster] = about.unit;
        margin_[cluster] = static_cast<float>(1.001 * (most_narrow_length * lost + row_residual_ * length +
                                                       8.0 * unit * most_narrow_length * (length + lost)) +
                                              0x1p-60);
    }
    return longest;
}

template <typename T>
bool Narrow<T>::set(const T *centroids, const std::int32_t *ids, std::int64_t count)
{
    if (rows_.d > most_features || count < 1)
        return false;
    const std::int64_t panels = (count + tiled_panel - 1) / tiled_panel;
    std::vector<double> lengths(panels);
    const std::int64_t per_task = std::max<std::int64_t>(1, 16384 / (tiled_panel * std::int64_t{rows_.d}));
    rows_.for_ranges(panels, per_task, [&](std::int64_t p, std::int64_t last, int) {
        for (; p < last; ++p)
            lengths[p] = set_panel(centroids, ids, count, p);
    });
    return *std::max_element(lengths.begin(), lengths.end()) < longest_centroid;
}

template <typename T>
void Narrow<T>::load(NarrowScratch &scratch, const T *const *points, const std::int64_t *rows, int count,
                     std::int32_t *open) const
{
    const std::int32_t *words[tiled_width] = {};
    if (kept_.size() == 0)
        kernels_.narrow(points, count, rows_.d, shift_, 1.0 / unit_, scratch.rows.data());
    for (int i = 0; i < count; ++i)
        words[i] = kept_.size() == 0 ? scratch.rows.data() + std::int64_t{i} * words_ : kept_.data() + rows[i] * words_;
    kernels_.pack(words, count, narrow_head + (rows_.d + 1) / 2, scratch.block.data());
    for (int i = 0; i < tiled_width; ++i)
        open[i] = scratch.unit()[i] > 0.0f ? 0 : -1;
    std::fill(open + count, open + tiled_width, -1);
}

template <typename T>
NarrowBlock Narrow<T>::block_of(const NarrowScratch &scratch) const
{
    return {scratch.block.data() + narrow_head * tiled_width, scratch.inverse(), scratch.length()};
}

template <typename T>
void Narrow<T>::score(const NarrowScratch &scratch, std::int64_t first, std::int64_t count, float *scores,
                      const Lowest &lowest) const
{
    const int pairs = (rows_.d + 1) / 2;
    kernels_.score(
        block_of(scratch), pairs,
        {panels_.data() + first * pairs, start_.data() + first, scale_.data() + first, margin_.data() + first}, count,
        scores, lowest);
}

template <typename T>
void Narrow<T>::limits(const NarrowScratch &scratch, const Lowest &lowest, float *limit) const
{
    const double of_length = 3.1 * (rows_.d + 4.0) * 0x1p-51 * (most_narrow_length + row_residual_);
    kernels_.limits(block_of(scratch), {panels_.data(), start_.data(), scale_.data(), margin_.data()}, lowest,
                    static_cast<float>(of_length), limit);
}

template <typename T>
void Narrow<T>::squares_above(const NarrowScratch &scratch, const float *scores, double *squares) const
{
    const float *square = scratch.square(), *unit_of = scratch.unit();
    const double share = 1.0 + sum_error_, least = rows_.d * 0x1p-147, scale = unit_ * unit_ * (1.0 + 0x1p-49);
    for (int i = 0; i < tiled_width; ++i) {
        const double own = static_cast<double>(square[i]) * share + least;
        squares[i] =
            std::max(0.0, own + 2.0 * static_cast<double>(unit_of[i]) * static_cast<double>(scores[i])) * scale;
    }
}

template <typename T>
void Narrow<T>::squares_below(const NarrowScratch &scratch, const float *scores, double *squares) const
{
    const float *square = scratch.square(), *unit_of = scratch.unit();
    const double share = 1.0 - sum_error_, least = rows_.d * 0x1p-147, scale = unit_ * unit_ * (1.0 - 0x1p-49);
    for (int i = 0; i < tiled_width; ++i) {
        const double own = static_cast<double>(square[i]) * share - least;
        squares[i] =
            std::max(0.0, own + 2.0 * static_cast<double>(unit_of[i]) * static_cast<double>(scores[i])) * scale;
    }
}

template <typename T>
double Narrow<T>::score_above(const NarrowScratch &scratch, int i, double square) const
{
    const double own = static_cast<double>(scratch.square()[i]) * (1.0 - sum_error_) - rows_.d * 0x1p-147;
    return (square * (1.0 + 0x1p-49) / (unit_ * unit_) - own) / (2.0 * static_cast<double>(scratch.unit()[i]));
}

template class Narrow<float>;
template class Narrow<double>;

} // namespace pgkm::cpu
