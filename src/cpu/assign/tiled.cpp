// tiled.cpp - scores filter, distances of the rows' own precision thin out, exact distances settle.
//
// The limit of a row: a centroid that scores more is not the nearest. It follows from the lowest score, or from a
// measured distance where this costs less than what it spares.
#include "cpu/assign/tiled.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cpu/assign/own_distances.hpp"
#include "cpu/encode/distance_filter.hpp"
#include "cpu/kernels/list_kernels.hpp"

namespace pgkm::cpu {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Candidates of a row on average beyond which the nearest of them is measured first.
constexpr std::int64_t many_hits = 2;

// Assignments of a fit over which a projection is expected to pay.
constexpr double usual_passes = 10.0;
// Later centroids lie in the middle of their rows. So the residuals of their projections are shorter, and a row has
// fewer candidates than in the first iteration: 0.2 to 0.6 of them on the sets that were tried.
constexpr double later_share = 0.6;

} // namespace

template <typename T>
void Tiled<T>::Scratch::make_room(Budget &budget)
{
    constexpr std::size_t most = tiled_width * max_candidates;
    candidates = Buffer<Hit>(budget, most);
    x = Buffer<const T *>(budget, most);
    c = Buffer<const T *>(budget, most);
    cluster = Buffer<std::int32_t>(budget, most);
    result = Buffer<double>(budget, most);
}

template <typename T>
Tiled<T>::Tiled(const Rows<T> &rows, Purpose purpose)
    : rows_(rows), purpose_(purpose), exact_(exact_kernels(rows.context.instruction_set)), square_bounds_(rows.d),
      centroids_(rows.context.budget, rows.k), scratch_(rows.pool.size())
{
}

template <typename T>
void Tiled<T>::begin(const T *centroids)
{
    const bool first = values_ == nullptr;
    values_ = centroids;
    ++round_;
    if (first) {
        filter_ = choose_filter();
        for (Scratch &scratch : scratch_) {
            scratch.make_room(rows_.context.budget);
            filter_->prepare(scratch.block);
        }
    }
    centroids_.set(rows_, centroids);
    holds_ = filter_->set(centroids_);
    for (Scratch &scratch : scratch_) {
        scratch.measures = false;
        scratch.seen = scratch.work = 0;
    }
}

template <typename T>
std::unique_ptr<Filter<T>> Tiled<T>::choose_filter()
{
    Shape shape = shape_of(rows_, purpose_);
    shape.scored = 1; // the least that bits would take
    if (has_few(shape))
        return distance_filter(rows_);
    const std::shared_ptr<EncodedRows<T>> encoded = EncodedRows<T>::of(rows_);
    auto bits = rows_.k <= most_bit_centroids ? encoded->bits(rows_) : nullptr;
    shape.scored = bits ? bits->work() : 0;
    if (has_few(shape))
        return distance_filter(rows_);
    if (bits)
        if (auto filter = bit_filter(rows_, std::move(bits)))
            return filter;
    const ProjectionUse<T> use = {values_, shape.repeats ? usual_passes : 1.0, shape.repeats ? later_share : 1.0};
    if (auto projection = encoded->projection(rows_, use))
        return projection_filter(rows_, std::move(projection));
    return int16_filter(rows_, encoded->int16(rows_, shape.repeats));
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
        own_distances(rows_, values_, first, count, labels, distances);
}

template <typename T>
void Tiled<T>::assign_block(int worker, const std::int64_t *rows, int count, std::int32_t *labels, const Bounds &bounds)
{
    Scratch &own = scratch_[worker];
    FilterBlock &block = own.block;
    block.forget(count);
    for (int i = 0; i < count; ++i)
        own.rows[i] = rows_.row(rows[i]);
    std::fill_n(own.lower, tiled_width, infinity);
    std::fill_n(own.upper, tiled_width, infinity);
    if (holds_ && pays(own)) {
        filter_->load(block, rows, own.rows);
        score(own);
        settle(own, labels);
    } else {
        std::fill_n(block.found, count, -1);
    }
    assign_open(own, worker, labels);
    if (bounds.upper != nullptr)
        give_bounds(own, labels, bounds);
}

// A candidate costs about as much as 120 / d + 0.2 direct distances. Only speed depends on it.
template <typename T>
bool Tiled<T>::pays(const Scratch &own) const
{
    const double direct = static_cast<double>(rows_.k) * (2.0 * rows_.d + 3.0) / 16.0;
    return own.seen < 4 * tiled_width ||
           static_cast<double>(own.work) * (120.0 + rows_.d / 5.0) < static_cast<double>(own.seen) * direct;
}

// Candidates of all rows, in ranges of centroids. Rows of which no centroid but the best is within the limit have none.
template <typename T>
void Tiled<T>::score(Scratch &own) const
{
    FilterBlock &block = own.block;
    const std::int64_t all = panels_for(centroids_.count()) * tiled_panel, range = filter_->range();
    alignas(128) float search[tiled_width];
    float before[tiled_width];
    for (std::int64_t first = 0; first < all; first += range) {
        const std::int64_t size = std::min(range, all - first);
        rows_.context.poll();
        std::copy_n(block.best, tiled_width, before);
        filter_->score(block, first, size);
        for (int i = 0; i < tiled_width; ++i) {
            const bool is_open = i >= block.count || block.found[i] < 0;
            if (own.measures && !is_open && block.best[i] < before[i] && block.best[i] <= block.limit[i])
                measure(own, i);
            const bool is_clear = all <= range && block.second[i] > block.limit[i];
            search[i] = is_open || is_clear ? -std::numeric_limits<float>::infinity() : block.limit[i];
        }
        const std::int64_t hits = filter_->pick(block, size, search);
        collect(own, first, hits);
        if (hits > many_hits * block.count && filter_->is_dearer_than_a_distance())
            own.measures = true;
    }
}

// Lowers the limit of a row by its distance to the centroid of the lowest score.
template <typename T>
void Tiled<T>::measure(Scratch &own, int row) const
{
    const T *c = centroids_[static_cast<std::int64_t>(own.block.index[row])];
    T estimate;
    exact_.estimates(own.rows[row], &c, 1, rows_.d, &estimate);
    lower_limit(own, row, square_bounds_.above(static_cast<double>(estimate)));
}

// The same by a square of such a distance, at most.
template <typename T>
void Tiled<T>::lower_limit(Scratch &own, int row, double square) const
{
    own.upper[row] = std::min(own.upper[row], square);
    const double score = filter_->score_above(own.block, row, square);
    if (score < static_cast<double>(own.block.limit[row]))
        own.block.limit[row] = float_above(score);
}

template <typename T>
void Tiled<T>::give_bounds(Scratch &own, const std::int32_t *labels, const Bounds &bounds) const
{
    const FilterBlock &block = own.block;
    double most[tiled_width], least[tiled_width];
    std::fill_n(most, tiled_width, infinity);
    std::fill_n(least, tiled_width, infinity);
    if (holds_) {
        // Centroids that were no candidates score more than the limit, and at least as much as the second.
        float others[tiled_width];
        for (int i = 0; i < tiled_width; ++i)
            others[i] = std::max(block.second[i], block.limit[i]);
        for (int i = 0; i < block.count; ++i)
            if (block.found[i] > 0 && labels[i] != centroids_.id(static_cast<std::int64_t>(block.index[i])))
                others[i] = block.limit[i];
        filter_->squares(block, others, most, least);
    }
    for (int i = 0; i < tiled_width; ++i) {
        most[i] = std::min(most[i], own.upper[i]);
        least[i] = std::min(least[i], own.lower[i]);
    }
    float above[tiled_width], below[tiled_width];
    list_kernels(rows_.context.instruction_set).roots(most, tiled_width, above, nullptr);
    list_kernels(rows_.context.instruction_set).roots(least, tiled_width, nullptr, below);
    const bool has_twins = centroids_.count() < rows_.k;
    for (int i = 0; i < block.count; ++i) {
        const bool is_open = block.found[i] < 0;
        bounds.upper[i] = is_open ? std::numeric_limits<float>::infinity() : above[i];
        bounds.lower[i] = is_open || (has_twins && centroids_.has_twin(labels[i])) ? 0.0f : std::max(0.0f, below[i]);
    }
}

template class Tiled<float>;
template class Tiled<double>;

} // namespace pgkm::cpu
