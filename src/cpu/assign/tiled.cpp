// tiled.cpp - scores filter, distances of the rows' own precision thin out, exact distances settle.
//
// The limit of a row: a centroid that scores more is not the nearest. narrow.hpp has that of scores without images.
// With them, let s and s_j be the float32 image of a row and of a centroid, e at least the sum of their errors, b the
// bound of a score (score_bound.hpp), and t_j the exact score of s and s_j, so that |s - s_j|^2 = |s|^2 + 2 t_j. A
// centroid at a distance of U or less has an image at U + e or less: its float32 score is at most ((U + e)^2 - |s|^2) /
// 2 + b. Such a U is known from
//
//   * the lowest score t: with A = |s|^2 + 2 t + 2 b + 4 r q, where r and q are the last features of the two images,
//     U = A^1/2 + e, and the limit is t + 2 b + 2 r q + 2 e A^1/2 + 2 e^2: |s|^2 cancels;
//   * the measured distance to that centroid, where this costs less than what it spares.
//
// D is float64, with a relative error of (d + 3) 2^-53: squares are taken larger by (d + 4) 2^-51 of A, or of the
// measured one, so that the centroid with the lowest D is a candidate. Bounds that are not finite leave a row open.
#include "cpu/assign/tiled.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpu/assign/own_distances.hpp"
#include "cpu/kernels/bounds.hpp"
#include "cpu/kernels/list_kernels.hpp"

namespace pgkm::cpu {
namespace {

// Candidates of a row on average beyond which the nearest of them is measured first.
constexpr std::int64_t many_hits = 2;

} // namespace

template <typename T>
Tiled<T>::Scratch::Scratch(Budget &budget, const Room &room)
    : block(budget, room.padded * tiled_width), image(budget, room.features * tiled_width), narrow(budget, room.words),
      marks(budget, room.width), scores(budget, room.range * tiled_width),
      hits(budget, std::max(room.range * tiled_width, room.width)), best(budget, tiled_width),
      second(budget, tiled_width), index(budget, tiled_width), limit(budget, tiled_width), square(budget, tiled_width),
      slack(budget, tiled_width), error(budget, tiled_width), length(budget, tiled_width),
      candidates(budget, tiled_width * max_candidates), found(budget, tiled_width),
      x(budget, tiled_width * max_candidates), c(budget, tiled_width * max_candidates),
      cluster(budget, tiled_width * max_candidates), result(budget, tiled_width * max_candidates)
{
}

template <typename T>
Tiled<T>::Tiled(const Rows<T> &rows, Purpose purpose)
    : rows_(rows), purpose_(purpose), kernels_(tiled_kernels(rows.context.instruction_set)),
      pairs_(pair_kernels(rows.context.instruction_set)), square_bounds_(rows.d), features_(rows.d),
      panel_count_(panels_for(rows.k)), ids_(rows.context.budget, rows.k), has_twin_(rows.context.budget, rows.k, 0),
      shift_(rows.context.budget, rows.d), scratch_(rows.pool.size())
{
}

template <typename T>
typename Tiled<T>::Scratch &Tiled<T>::scratch(int worker)
{
    auto &made = scratch_[worker];
    if (!made) {
        Room room = {.range = range_};
        if (images_) {
            room.padded = Images<T>::padded(rows_.d);
            room.features = features_;
        } else if (marks_) {
            room.width = marks_->width();
        } else {
            room.words = narrow_->words();
        }
        made = std::make_unique<Scratch>(rows_.context.budget, room);
    }
    return *made;
}

template <typename T>
void Tiled<T>::assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances)
{
    std::int64_t rows[tiled_width];
    for (int done = 0; done < count; done += tiled_width) {
        const int size = std::min(tiled_width, count - done);
        std::iota(rows, rows + size, first + done);
        assign_block(worker, rows, size, labels + done, {nullptr, nullptr});
    }
    if (distances != nullptr)
        own_distances(rows_, centroids_, first, count, labels, distances);
}

template <typename T>
void Tiled<T>::assign_block(int worker, const std::int64_t *rows, int count, std::int32_t *labels, const Bounds &bounds)
{
    Scratch &own = scratch(worker);
    load(own, rows, count);
    if (pays(own)) {
        if (images_)
            score(own, count);
        else if (marks_)
            score_marks(own, rows, count);
        else
            score_narrow(own, count);
        settle(own, count, labels);
    } else {
        std::fill_n(own.found.data(), count, -1);
    }
    assign_open(own, worker, count, labels);
    if (bounds.upper == nullptr)
        return;
    if (images_)
        give_bounds(own, count, labels, bounds);
    else
        give_narrow_bounds(own, count, labels, bounds);
}

// A candidate costs about as much as 120 / d + 0.2 direct distances. Only speed depends on it.
template <typename T>
bool Tiled<T>::pays(const Scratch &own) const
{
    const double direct = static_cast<double>(rows_.k) * (2.0 * rows_.d + 3.0) / 16.0;
    return own.seen < 4 * tiled_width ||
           static_cast<double>(own.work) * (120.0 + rows_.d / 5.0) < static_cast<double>(own.seen) * direct;
}

// The block has met no centroid.
template <typename T>
void Tiled<T>::forget(Scratch &own) const
{
    for (Buffer<float> *scores : {&own.best, &own.second, &own.limit})
        std::fill_n(scores->data(), tiled_width, largest_float);
    std::fill_n(own.index.data(), tiled_width, 0.0f);
    std::fill_n(own.lower, tiled_width, std::numeric_limits<double>::infinity());
    std::fill_n(own.upper, tiled_width, std::numeric_limits<double>::infinity());
}

// Packs the rows, or their images.
template <typename T>
void Tiled<T>::load(Scratch &own, const std::int64_t *rows, int count) const
{
    for (int i = 0; i < count; ++i)
        own.rows[i] = rows_.row(rows[i]);
    forget(own);
    if (images_)
        return load_images(own, rows, count);
    if (marks_)
        std::fill_n(own.found.data(), tiled_width, holds_ ? 0 : -1);
    else if (holds_)
        narrow_->load(own.narrow, own.rows, rows, count, own.found.data());
    else
        std::fill_n(own.found.data(), tiled_width, -1);
}

template <typename T>
void Tiled<T>::load_images(Scratch &own, const std::int64_t *rows, int count) const
{
    const float *images[tiled_width] = {};
    for (int i = 0; i < count; ++i)
        images[i] = images_->row(rows[i]);
    kernels_.pack(images, count, features_, static_cast<const float *>(nullptr), own.image.data());
    reach(own, count);
}

// How far scores and images of the rows may be off.
template <typename T>
void Tiled<T>::reach(Scratch &own, int count) const
{
    kernels_.norms(own.image.data(), features_, own.square.data());
    for (int i = 0; i < tiled_width; ++i) {
        const double length = bound_.length_above(static_cast<double>(own.square[i]));
        own.length[i] = length;
        own.slack[i] = bound_.of(length);
        own.error[i] = images_->error(length) + centroid_error_;
        own.found[i] = i < count && std::isfinite(own.slack[i] + own.error[i]) ? 0 : -1;
        if (own.found[i] < 0)
            own.limit[i] = -std::numeric_limits<float>::infinity();
    }
}

// Scores of the block with `panels` panels, from centroid `first` on.
template <typename T>
void Tiled<T>::multiply(Scratch &own, std::int64_t first, std::int64_t panels) const
{
    const float *block = own.image.data();
    const Lowest lowest = {own.best.data(), own.second.data(), own.index.data(), static_cast<float>(first)};
    for (std::int64_t f = 0; f < features_; f += score_chain) {
        const std::int64_t size = std::min<std::int64_t>(score_chain, features_ - f);
        kernels_.add(block + f * tiled_width, static_cast<int>(size),
                     panels_.data() + first * features_ + f * tiled_panel, std::int64_t{tiled_panel} * features_,
                     panels, f == 0 ? start_.data() + first : nullptr, own.scores.data(),
                     f + size == features_ ? &lowest : nullptr);
        if (f % (4 * score_chain) == 0)
            rows_.context.poll();
    }
}

template <typename T>
void Tiled<T>::score(Scratch &own, int count) const
{
    const std::int64_t all = panels_for(count_) * tiled_panel;
    float before[tiled_width];
    for (std::int64_t first = 0; first < all; first += range_) {
        const std::int64_t size = std::min(range_, all - first);
        std::copy_n(own.best.data(), tiled_width, before);
        multiply(own, first, size / tiled_panel);
        lower_limits(own, count, before);
        const std::int64_t hits = kernels_.at_most(own.scores.data(), size, own.limit.data(), own.hits.data());
        collect(own, first, hits, count);
        if (!own.measures && hits > many_hits * count)
            own.measures = true;
    }
}

// The same without images. Rows of which no centroid but the best is within the limit have no candidates.
template <typename T>
void Tiled<T>::score_narrow(Scratch &own, int count) const
{
    if (!holds_)
        return;
    const std::int64_t all = panels_for(count_) * tiled_panel;
    alignas(128) float search[tiled_width];
    for (std::int64_t first = 0; first < all; first += range_) {
        const std::int64_t size = std::min(range_, all - first);
        const Lowest lowest = {own.best.data(), own.second.data(), own.index.data(), static_cast<float>(first)};
        rows_.context.poll();
        narrow_->score(own.narrow, first, size / tiled_panel, own.scores.data(), lowest);
        narrow_->limits(own.narrow, lowest, own.limit.data());
        for (int i = 0; i < tiled_width; ++i) {
            const bool is_clear = own.found[i] < 0 || (all <= range_ && own.second[i] > own.limit[i]);
            search[i] = is_clear ? -std::numeric_limits<float>::infinity() : own.limit[i];
        }
        collect(own, first, kernels_.at_most(own.scores.data(), size, search, own.hits.data()), count);
    }
}

// The same by marks, row by row.
template <typename T>
void Tiled<T>::score_marks(Scratch &own, const std::int64_t *rows, int count) const
{
    if (!holds_)
        return;
    rows_.context.poll();
    marks_->score(own.marks, rows, count, {own.best.data(), own.second.data(), own.index.data(), 0.0f},
                  own.limit.data());
    for (int i = 0; i < count; ++i)
        if (own.second[i] <= own.limit[i])
            collect(own, 0, marks_->pick(own.marks, i, own.limit[i], own.hits.data()), count);
}

// Takes the lowest scores into the limits, where they are lower than `before`.
template <typename T>
void Tiled<T>::lower_limits(Scratch &own, int count, const float *before) const
{
    for (int i = 0; i < count; ++i) {
        if (own.found[i] < 0 || !(own.best[i] < before[i]))
            continue;
        const double score = own.best[i], b = own.slack[i], e = own.error[i];
        const double rests = static_cast<double>(own.image[(features_ - 1) * tiled_width + i]) *
                             static_cast<double>(rest_[static_cast<std::int64_t>(own.index[i])]) * (1.0 + 0x1p-50);
        const double square = std::max(0.0, own.length[i] * own.length[i] + 2.0 * (score + b) + 4.0 * rests);
        const double root = std::sqrt(square) * (1.0 + 0x1p-50);
        const double limit = score + 2.0 * b + 2.0 * rests + 2.0 * e * (root + e) + (rows_.d + 4.0) * 0x1p-51 * square;
        own.upper[i] = std::min(own.upper[i], (root + e) * (root + e) * (1.0 + 0x1p-50));
        own.limit[i] = std::min(own.limit[i], float_above(limit));
        if (own.measures && own.best[i] <= own.limit[i])
            measure(own, i, own.index[i]);
    }
}

// Lowers the limit of a row by its distance to a centroid.
template <typename T>
void Tiled<T>::measure(Scratch &own, int row, float index) const
{
    const T *c = centroid(static_cast<std::int64_t>(index));
    T estimate;
    pairs_.estimates(own.rows[row], &c, 1, rows_.d, &estimate);
    lower_limit(own, row, square_bounds_.above(static_cast<double>(estimate)));
}

// The same by a square of such a distance, at most.
template <typename T>
void Tiled<T>::lower_limit(Scratch &own, int row, double square) const
{
    own.upper[row] = std::min(own.upper[row], square);
    if (!images_) {
        const double score =
            marks_ ? marks_->score_above(own.marks, row, square) : narrow_->score_above(own.narrow, row, square);
        if (score < static_cast<double>(own.limit[row]))
            own.limit[row] = float_above(score);
        return;
    }
    const double most = std::sqrt(square) * (1.0 + 0x1p-50) + own.error[row];
    const double norm = bound_.square_below(static_cast<double>(own.square[row]));
    const double limit = (most * most * (1.0 + 0x1p-49) - norm) / 2.0 + own.slack[row] + 0x1p-49 * norm;
    if (limit < static_cast<double>(own.limit[row]))
        own.limit[row] = float_above(limit);
}

template <typename T>
void Tiled<T>::give_bounds(const Scratch &own, int count, const std::int32_t *labels, const Bounds &bounds) const
{
    for (int i = 0; i < count; ++i) {
        if (own.found[i] < 0) {
            bounds.upper[i] = std::numeric_limits<float>::infinity();
            bounds.lower[i] = 0.0f;
            continue;
        }
        bounds.upper[i] = distance_above(own.upper[i]);
        // Centroids that were no candidates score more than the limit, and at least as much as the second.
        const bool alone = labels[i] == ids_[static_cast<std::int64_t>(own.index[i])];
        const double least = static_cast<double>(alone ? std::max(own.second[i], own.limit[i]) : own.limit[i]);
        const double square =
            bound_.square_below(static_cast<double>(own.square[i])) * (1.0 - 0x1p-50) + 2.0 * (least - own.slack[i]);
        const double others = std::sqrt(std::max(0.0, square)) - own.error[i] * (1.0 + 0x1p-40);
        const double settled = own.lower[i];
        const bool twin = has_twin_[labels[i]] != 0;
        bounds.lower[i] =
            twin ? 0.0f
                 : std::max(0.0f, std::min(distance_below(settled), distance_below(std::max(0.0, others) * others)));
    }
}

// The same without images.
template <typename T>
void Tiled<T>::give_narrow_bounds(Scratch &own, int count, const std::int32_t *labels, const Bounds &bounds) const
{
    // Centroids that were no candidates score more than the limit, and at least as much as the second.
    float others[tiled_width];
    for (int i = 0; i < tiled_width; ++i)
        others[i] = std::max(own.second[i], own.limit[i]);
    for (int i = 0; i < count; ++i)
        if (own.found[i] > 0 && labels[i] != ids_[static_cast<std::int64_t>(own.index[i])])
            others[i] = own.limit[i];
    double most[tiled_width], least[tiled_width];
    if (marks_) {
        std::fill(most, most + tiled_width, 0.0);
        std::fill(least, least + tiled_width, 0.0);
        marks_->squares(own.marks, holds_ ? count : 0, own.limit.data(), others, most, least);
    } else {
        narrow_->squares_above(own.narrow, own.limit.data(), most);
        narrow_->squares_below(own.narrow, others, least);
    }
    for (int i = 0; i < count; ++i)
        least[i] = std::min(least[i], own.lower[i]); // infinite where nothing was measured
    float above[tiled_width], unused[tiled_width], below[tiled_width];
    list_kernels(rows_.context.instruction_set).roots(most, tiled_width, above, nullptr);
    list_kernels(rows_.context.instruction_set).roots(least, tiled_width, unused, below);
    for (int i = 0; i < count; ++i) {
        const bool is_open = own.found[i] < 0, twin = any_twin_ && has_twin_[labels[i]] != 0;
        bounds.upper[i] = is_open ? std::numeric_limits<float>::infinity() : above[i];
        bounds.lower[i] = is_open || twin ? 0.0f : std::max(0.0f, below[i]);
    }
}

template class Tiled<float>;
template class Tiled<double>;

} // namespace pgkm::cpu
