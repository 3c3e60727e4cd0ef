// tiled.cpp - float32 scores filter, exact distances settle; and the proof of the filter's bound.
#include "cpu/assign/tiled.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pgkm::cpu {
namespace {

// Features per chain of fused operations: long enough to keep the sums in registers, short enough
// that the error bound, which grows with it, stays small.
constexpr std::int32_t chain = 32;
// Centroids whose scores are kept at a time.
constexpr std::int64_t max_range = 256;

constexpr double unit = 0x1p-24; // of float32 rounding

// Scores beyond this could meet infinity on the way.
constexpr double largest_score = 0x1p120;

} // namespace

// The bound. With the shift m let X = x - m and C = c - m, exactly; the score stands for
// t = |C|^2 / 2 - X.C, which orders centroids as |x - c|^2 does. u = 2^-24.
//
//   1. Centring rounds each coordinate once (for float64 input the subtraction in float64 adds
//      less than 2^-28 u): |X' - X| <= 1.0001 u |X| per coordinate, and so for C', plus 2^-149
//      where the result is subnormal.
//   2. X'.C' is summed in chains of L = 32 features from 0, one rounding per feature (two
//      without a fused operation: read 2 L for L), and the p = ceil(d / L) chains are added to
//      the score one by one. By the usual analysis the rounding error is at most
//      (L + p) u (1 + small) sum |X'_i C'_i|, and p u (1 + small) |C|^2 / 2 for what the start
//      contributes to the partial sums; subnormal products add d 2^-149.
//   3. The start is |C|^2 / 2, summed in float64 and rounded once: u |C|^2 / 2 (1 + small).
//
// By Cauchy and Schwarz sum |X_i C_i| <= |X| |C|. So with r = |X| and R the longest |C|
//      |score - t| <= (L + p + 4) u r R + (p + 2) u R^2 / 2 + (subnormals),
// where "small", below 0.001, is covered by a factor of 1.01.
//
//   4. D itself is float64: its relative error is at most (d + 3) 2^-53, of an exact value of
//      at most (r + R)^2. If j has the lowest D, then t_j exceeds the t of the centroid with the
//      lowest score by no more than (d + 4) 2^-52 (r + R)^2, so its score exceeds the lowest by
//      no more than that plus twice the bound.
ScoreBound::ScoreBound(std::int32_t d, double largest_centroid, bool fused) : d_(d), largest_(largest_centroid)
{
    const double chains = std::ceil(d_ / chain);
    const double roundings = (fused ? 1.0 : 2.0) * std::min(d, chain);
    product_ = 1.01 * unit * (roundings + chains + 4.0);
    half_square_ = 1.01 * unit * (chains + 2.0);
}

double ScoreBound::margin(double norm_square) const
{
    // norm_square came from d float32 operations; squares below 2^-149 were lost.
    const double r = std::sqrt(norm_square * (1.0 + 1.01 * unit * (d_ + 4.0)) + d_ * 0x1p-147) * (1.0 + 4.0 * unit);
    const double scale = r + largest_;
    if (!(scale * scale < largest_score) || d_ * unit > 0.01)
        return std::numeric_limits<double>::infinity();
    const double bound =
        product_ * r * largest_ + half_square_ * largest_ * largest_ / 2.0 + d_ * 0x1p-147 * (1.0 + scale);
    return (2.0 * bound + (d_ + 4.0) * 0x1p-52 * scale * scale) * (1.0 + 4.0 * unit);
}

template <typename T>
Tiled<T>::Scratch::Scratch(Budget &budget, std::int32_t d, std::int64_t range)
    : block(budget, std::int64_t{d} * tiled_width), scores(budget, range * tiled_width),
      hits(budget, range * tiled_width), best(budget, tiled_width), limit(budget, tiled_width),
      square(budget, tiled_width), margin(budget, tiled_width), candidates(budget, tiled_width * max_candidates),
      found(budget, tiled_width), x(budget, tiled_width * max_candidates), c(budget, tiled_width * max_candidates),
      result(budget, tiled_width * max_candidates), left_rows(budget, tiled_width)
{
}

template <typename T>
Tiled<T>::Tiled(const Rows<T> &rows)
    : rows_(rows), kernels_(tiled_kernels(rows.context.instruction_set)),
      pairs_(pair_kernels(rows.context.instruction_set)), direct_(rows),
      panel_count_((std::int64_t{rows.k} + tiled_panel - 1) / tiled_panel),
      range_(std::min(max_range, panel_count_ * tiled_panel)), shift_(rows.context.budget, rows.d),
      panels_(rows.context.budget, panel_count_ * tiled_panel * rows.d),
      start_(rows.context.budget, panel_count_ * tiled_panel), scratch_(rows.pool.size())
{
}

template <typename T>
void Tiled<T>::begin(const T *centroids)
{
    centroids_ = centroids;
    direct_.begin(centroids);
    set_shift(centroids);
    std::vector<double> lengths(panel_count_);
    const std::int64_t per_task = std::max<std::int64_t>(1, 16384 / (tiled_panel * std::int64_t{rows_.d}));
    rows_.for_ranges(panel_count_, per_task, [&](std::int64_t p, std::int64_t last, int) {
        for (; p < last; ++p)
            lengths[p] = set_panel(centroids, p);
    });
    bound_ = ScoreBound(rows_.d, *std::max_element(lengths.begin(), lengths.end()), kernels_.fused);
    for (const auto &scratch : scratch_)
        if (scratch)
            scratch->rows = scratch->work = 0;
}

// Any shift is right; one near the middle of the centroids makes the bound tight.
template <typename T>
void Tiled<T>::set_shift(const T *centroids)
{
    const std::int64_t step = (rows_.k + 255) / 256;
    std::vector<double> sum(rows_.d, 0.0);
    double count = 0.0;
    for (std::int64_t j = 0; j < rows_.k; j += step, ++count)
        for (std::size_t f = 0; f < sum.size(); ++f)
            sum[f] += static_cast<double>(centroids[j * rows_.d + static_cast<std::int64_t>(f)]);
    for (std::size_t f = 0; f < sum.size(); ++f)
        shift_[f] = static_cast<T>(sum[f] / count);
}

// Fills a panel and returns the length of its longest centroid, rounded up.
template <typename T>
double Tiled<T>::set_panel(const T *centroids, std::int64_t panel)
{
    const std::int64_t d = rows_.d;
    float *values = panels_.data() + panel * tiled_panel * d;
    double longest = 0.0;
    for (std::int64_t j = 0; j < tiled_panel; ++j) {
        const std::int64_t cluster = panel * tiled_panel + j;
        double square = 0.0;
        for (std::int64_t f = 0; f < d; ++f) {
            const double centred =
                cluster < rows_.k ? static_cast<double>(centroids[cluster * d + f]) - static_cast<double>(shift_[f])
                                  : 0.0;
            square += centred * centred;
            values[f * tiled_panel + j] = -static_cast<float>(centred);
        }
        // Centroids that only fill the last panel score too high to be hit.
        start_[cluster] = cluster < rows_.k ? static_cast<float>(square / 2.0) : std::numeric_limits<float>::max();
        longest = std::max(longest, std::sqrt(square) * (1.0 + static_cast<double>(d + 8) * 0x1p-52) + 0x1p-500);
    }
    return longest;
}

// A settled distance costs about 32 times a score and 8 times a direct one: past this many the
// direct kernel alone is faster. Only speed depends on it.
template <typename T>
bool Tiled<T>::pays(const Scratch &scratch) const
{
    return scratch.rows < 4 * tiled_width || scratch.work * 32 < scratch.rows * 3 * rows_.k;
}

template <typename T>
void Tiled<T>::assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances)
{
    const T *rows[tiled_width];
    for (int done = 0; done < count; done += tiled_width) {
        const int size = std::min(tiled_width, count - done);
        for (int i = 0; i < size; ++i)
            rows[i] = rows_.values + (first + done + i) * rows_.d;
        assign_block(worker, rows, size, labels + done, distances == nullptr ? nullptr : distances + done);
    }
}

template <typename T>
void Tiled<T>::assign_block(int worker, const T *const *rows, int count, std::int32_t *labels, double *distances)
{
    auto &made = scratch_[worker];
    if (!made)
        made = std::make_unique<Scratch>(rows_.context.budget, rows_.d, range_);
    Scratch &scratch = *made;
    if (!pays(scratch)) {
        direct_.assign_rows(worker, rows, count, labels, distances);
        return;
    }
    kernels_.pack(rows, count, rows_.d, shift_.data(), scratch.block.data());
    score(scratch, count);
    settle(scratch, worker, rows, count, labels, distances);
    scratch.rows += count;
}

template <typename T>
void Tiled<T>::score(Scratch &scratch, int count) const
{
    kernels_.norms(scratch.block.data(), rows_.d, scratch.square.data());
    for (std::size_t i = 0; i < tiled_width; ++i) {
        scratch.margin[i] = bound_.margin(static_cast<double>(scratch.square[i]));
        // Where no bound holds the point goes to the direct kernel.
        scratch.found[i] = std::isfinite(scratch.margin[i]) ? 0 : max_candidates + 1;
        scratch.best[i] = std::numeric_limits<float>::max();
    }
    const std::int64_t d = rows_.d;
    for (std::int64_t first = 0; first < rows_.k; first += range_) {
        const std::int64_t panels = std::min(range_ / tiled_panel, panel_count_ - first / tiled_panel);
        for (std::int64_t f = 0; f < d; f += chain) {
            const bool last = f + chain >= d;
            kernels_.add(scratch.block.data() + f * tiled_width, static_cast<int>(std::min<std::int64_t>(chain, d - f)),
                         panels_.data() + first * d + f * tiled_panel, tiled_panel * d, panels,
                         f == 0 ? start_.data() + first : nullptr, scratch.scores.data(),
                         last ? scratch.best.data() : nullptr);
            if (f % (8 * chain) == 0)
                rows_.context.poll();
        }
        for (std::size_t i = 0; i < tiled_width; ++i) {
            const double limit = static_cast<double>(scratch.best[i]) + scratch.margin[i];
            // Rounded up. A point without a bound shall have no hits.
            scratch.limit[i] = scratch.found[i] > max_candidates
                                   ? -std::numeric_limits<float>::infinity()
                                   : static_cast<float>(limit + std::fabs(limit) * 0x1p-22 + 0x1p-140);
        }
        const std::int64_t hits =
            kernels_.at_most(scratch.scores.data(), panels * tiled_panel, scratch.limit.data(), scratch.hits.data());
        collect(scratch, first, hits, count);
    }
}

// Adds the hits of a range to the candidates of their points. Later ranges lower the limits: when a
// point's list is full, what has fallen out is dropped.
template <typename T>
void Tiled<T>::collect(Scratch &scratch, std::int64_t first, std::int64_t hits, int count) const
{
    for (std::int64_t h = 0; h < hits; ++h) {
        Hit hit = scratch.hits[h];
        std::int32_t &found = scratch.found[hit.point];
        if (hit.point >= count || found > max_candidates)
            continue;
        Hit *list = scratch.candidates.data() + hit.point * max_candidates;
        if (found == max_candidates) {
            const float limit = scratch.limit[hit.point];
            found = static_cast<std::int32_t>(
                std::remove_if(list, list + found, [&](const Hit &old) { return old.score > limit; }) - list);
        }
        hit.centroid += static_cast<std::int32_t>(first);
        if (found < max_candidates)
            list[found] = hit;
        ++found;
    }
}

// Lists the pairs to settle: of points with several candidates, or all of them if distances are
// wanted. Points without a bound are set aside for the direct kernel. Returns the pairs.
template <typename T>
int Tiled<T>::list_pairs(Scratch &scratch, const T *const *rows, int count, std::int32_t *labels, bool all) const
{
    int pairs = 0;
    scratch.left = 0;
    for (int i = 0; i < count; ++i) {
        std::int32_t &found = scratch.found[i];
        if (found > max_candidates) {
            scratch.left_rows[scratch.left++] = rows[i];
            found = 0;
            continue;
        }
        Hit *list = scratch.candidates.data() + i * max_candidates;
        const float limit = scratch.limit[i];
        found = static_cast<std::int32_t>(
            std::remove_if(list, list + found, [&](const Hit &hit) { return hit.score > limit; }) - list);
        labels[i] = list[0].centroid;
        if (found == 1 && !all)
            continue;
        for (int h = 0; h < found; ++h, ++pairs) {
            scratch.x[pairs] = rows[i];
            scratch.c[pairs] = centroids_ + std::int64_t{list[h].centroid} * rows_.d;
        }
    }
    return pairs;
}

template <typename T>
void Tiled<T>::settle(Scratch &scratch, int worker, const T *const *rows, int count, std::int32_t *labels,
                      double *distances)
{
    const bool all = distances != nullptr;
    const int pairs = list_pairs(scratch, rows, count, labels, all);
    const int batch = static_cast<int>(std::max<std::int64_t>(8, work_per_poll / rows_.d));
    for (int p = 0; p < pairs; p += batch) {
        if (p > 0)
            rows_.context.poll();
        pairs_.distances(scratch.x.data() + p, scratch.c.data() + p, std::min(batch, pairs - p), rows_.d,
                         scratch.result.data() + p);
    }
    scratch.work += pairs + std::int64_t{scratch.left} * rows_.k / 8;
    const double *next = scratch.result.data();
    for (int i = 0; i < count; ++i) {
        const std::int32_t found = scratch.found[i];
        if (found == 0 || (found == 1 && !all))
            continue;
        const auto best = std::min_element(next, next + found) - next; // the first on a tie
        labels[i] = scratch.candidates[i * max_candidates + best].centroid;
        if (all)
            distances[i] = next[best];
        next += found;
    }
    if (scratch.left == 0)
        return;
    std::int32_t left_labels[tiled_width];
    direct_.assign_rows(worker, scratch.left_rows.data(), scratch.left, left_labels, scratch.result.data());
    for (int i = 0, left = 0; i < count; ++i) {
        if (scratch.found[i] != 0)
            continue;
        labels[i] = left_labels[left];
        if (all)
            distances[i] = scratch.result[left];
        ++left;
    }
}

template class Tiled<float>;
template class Tiled<double>;

} // namespace pgkm::cpu
