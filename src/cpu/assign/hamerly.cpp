// hamerly.cpp - screens rows by their bounds, searches lists of centroids for the others.
#include "cpu/assign/hamerly.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pgkm::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The filter beats lists that hold more than this share of the centroids: eight times the lanes' work per cycle, less
// what packing and settling take, which is more beside few features.
constexpr double filter_share(int d)
{
    return d < 16 ? 0.35 : 0.2;
}
// With fewer centroids pivots would not save any distance worth their own.
constexpr std::int32_t pivot_clusters = 32;

// Rows that stay in the second-level cache between their two visits, but enough that those of one
// centroid fill a block.
template <typename T>
int rows_for(const Rows<T> &rows)
{
    constexpr std::int64_t bytes = 1 << 20;
    const std::int64_t cached = bytes / (std::int64_t{rows.d} * static_cast<std::int64_t>(sizeof(T)));
    const std::int64_t threads = rows.pool.size(); // each has a block, and eight where rows are many
    const std::int64_t share = std::max(std::clamp<std::int64_t>(rows.n / threads, 512, 4096), rows.n / (threads * 8));
    const std::int64_t brief = work_per_poll * 4 / rows.d; // blocks are not left half done on a cancel
    const std::int64_t wanted = std::min({share, brief, std::max(cached, std::int64_t{48} * rows.k)});
    return static_cast<int>(std::clamp<std::int64_t>((wanted + 63) / 64 * 64, 64, 65536));
}

} // namespace

template <typename T>
Hamerly<T>::Scratch::Scratch(Budget &budget, std::int32_t d, std::int32_t k, int rows_at_once)
    : block(budget, std::int64_t{d} * width), best(budget, width), second(budget, width), label(budget, width),
      list(budget, k + list_panel + list_room), active(budget, rows_at_once + list_room), sorted(budget, rows_at_once),
      start(budget, k + 1), dense(budget, rows_at_once)
{
}

template <typename T>
Hamerly<T>::Hamerly(const Rows<T> &rows, Purpose purpose)
    : rows_(rows), rows_at_once_(rows_for(rows)), kernels_(list_kernels(rows.context.instruction_set)),
      exact_(exact_kernels(rows.context.instruction_set)), geometry_(rows), upper_(rows.context.budget, rows.n),
      lower_(rows.context.budget, rows.n)
{
    const Shape shape = shape_of(rows, purpose);
    if (choose_dense(shape) == Assignment::tiled)
        tiled_ = std::make_unique<Tiled<T>>(rows, purpose);
    for (int worker = 0; worker < rows.pool.size(); ++worker)
        scratch_.emplace_back(rows.context.budget, rows.d, rows.k, rows_at_once_);
}

template <typename T>
void Hamerly<T>::begin(const T *centroids)
{
    first_ = centroids_ == nullptr;
    centroids_ = centroids;
    std::int64_t looked = 0, passed = 0;
    for (Scratch &scratch : scratch_) {
        scratch.tried = scratch.kept = 0;
        looked += std::exchange(scratch.looked, 0);
        passed += std::exchange(scratch.passed, 0);
    }
    if (tiled_) {
        tiled_->begin(centroids);
        lists_ = lists_ && !tiled_->filter().is_quick() && passed * 10 <= looked * 9;
    }
    const bool has_distances = lists_ || rows_.k <= most_few; // those of few centroids cost nothing
    geometry_.set(centroids, has_distances);
    if (!first_ || !lists_)
        return;
    pivots_ = {0};
    if (rows_.k >= pivot_clusters) {
        const auto root = static_cast<std::int32_t>(std::sqrt(static_cast<double>(rows_.k)));
        pivots_ = geometry_.spread((root + list_panel - 1) / list_panel * list_panel);
    }
}

template <typename T>
bool Hamerly<T>::has_lists(const Scratch &scratch) const
{
    return lists_ && (!tiled_ || scratch.looked < trial_rows || scratch.passed * 10 <= scratch.looked * 9);
}

template <typename T>
void Hamerly<T>::assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances)
{
    Scratch &scratch = scratch_[worker];
    for (int done = 0; done < count;) {
        // A short part first shows whether lists help, before pivots are tried on all.
        const int size =
            std::min<int>(count - done, first_ && scratch.looked < trial_rows ? trial_rows : rows_at_once_);
        if (has_lists(scratch)) {
            assign_by_lists(scratch, first + done, size, labels + done);
            filter(worker, first + done, scratch.dense.data(), std::exchange(scratch.dense_count, 0), labels + done);
        } else {
            int active = screen(scratch, first + done, size, labels + done);
            // Exact upper bounds first, if scores cost more and they spare enough rows.
            if (!first_ && !tiled_->filter().is_quick() &&
                (scratch.tried < trial_rows || scratch.kept * 4 < scratch.tried * 3))
                active = tighten(scratch, first + done, active, labels + done);
            // Few centroids: all rows in order come from memory no later than most of them.
            if (rows_.k <= most_few && tiled_->filter().is_quick() && active > size / 2) {
                active = size;
                std::iota(scratch.active.begin(), scratch.active.begin() + size, 0);
            }
            filter(worker, first + done, scratch.active.data(), active, labels + done);
        }
        done += size;
    }
    if (distances != nullptr)
        own_distances(rows_, centroids_, first, count, labels, distances);
}

// Lists the rows that the bounds leave; returns how many.
template <typename T>
int Hamerly<T>::screen(Scratch &scratch, std::int64_t first, int count, const std::int32_t *labels)
{
    if (!first_)
        return kernels_.screen(labels, count, geometry_.drift(), upper_.data() + first, lower_.data() + first,
                               scratch.active.data());
    std::iota(scratch.active.begin(), scratch.active.begin() + count, 0);
    return count;
}

template <typename T>
void Hamerly<T>::assign_by_lists(Scratch &scratch, std::int64_t first, int count, std::int32_t *labels)
{
    int active = screen(scratch, first, count, labels);
    if (first_)
        label_by_pivots(scratch, first, count, labels);
    else // in the order of memory, which brings the rows that stay into cache
        active = tighten(scratch, first, active, labels);
    sort_by_label(scratch, active, labels);
    for (std::int32_t a = 0; a < rows_.k; ++a) {
        const std::int32_t end = scratch.start[a + 1];
        for (std::int32_t i = scratch.start[a]; i < end; i += width)
            assign_block(scratch, first, scratch.sorted.data() + i, std::min(width, end - i), a, labels);
    }
}

// Replaces the upper bounds of the active rows by distances; returns how many must be searched.
template <typename T>
int Hamerly<T>::tighten(Scratch &scratch, std::int64_t first, int active, const std::int32_t *labels)
{
    const int part = static_cast<int>(std::max<std::int64_t>(1, work_per_poll / rows_.d));
    std::int32_t *rows = scratch.active.data();
    int open = 0;
    for (int i = 0; i < active; i += part) {
        rows_.context.poll();
        const int kept =
            kernels_.tighten(rows_.values + first * rows_.d, rows_.d, centroids_, labels, geometry_.drift(),
                             lower_.data() + first, upper_.data() + first, rows + i, std::min(part, active - i));
        std::copy(rows + i, rows + i + kept, rows + open);
        open += kept;
    }
    scratch.tried += active;
    scratch.kept += open;
    return open;
}

// The nearest pivot and the distance to it, as if they were the last iteration's.
template <typename T>
void Hamerly<T>::label_by_pivots(Scratch &scratch, std::int64_t first, int count, std::int32_t *labels)
{
    if (pivots_.size() == 1) { // every row is compared with every centroid
        std::fill_n(labels, count, 0);
        std::fill_n(upper_.data() + first, count, infinity);
        return;
    }
    const T *rows[width];
    for (int done = 0; done < count; done += width) {
        const int size = std::min(width, count - done);
        for (int i = 0; i < size; ++i)
            rows[i] = rows_.values + (first + done + i) * rows_.d;
        rows_.context.poll();
        exact_.pack(rows, size, rows_.d, width, scratch.block.data());
        search(scratch, width, pivots_.data(), static_cast<int>(pivots_.size()));
        for (int i = 0; i < size; ++i) {
            const auto lane = static_cast<std::size_t>(i);
            labels[done + i] = static_cast<std::int32_t>(scratch.label[lane]);
            upper_[first + done + i] = distance_above(scratch.best[lane]);
        }
    }
}

// Counting sort of the active rows.
template <typename T>
void Hamerly<T>::sort_by_label(Scratch &scratch, int count, const std::int32_t *labels) const
{
    std::int32_t *start = scratch.start.data();
    std::fill_n(start, rows_.k + 1, 0);
    for (int i = 0; i < count; ++i)
        ++start[labels[scratch.active[i]] + 1];
    for (std::int32_t a = 0; a < rows_.k; ++a)
        start[a + 1] += start[a];
    for (int i = count; i-- > 0;) { // from the end: start[a + 1] becomes a's first again
        const std::int32_t row = scratch.active[i];
        scratch.sorted[--start[labels[row] + 1]] = row;
    }
    for (std::int32_t a = 0; a < rows_.k; ++a)
        start[a] = start[a + 1];
    start[rows_.k] = count;
}

template <typename T>
void Hamerly<T>::assign_block(Scratch &scratch, std::int64_t first, const std::int32_t *rows, int count, std::int32_t a,
                              std::int32_t *labels)
{
    rows_.context.poll();
    float *upper = upper_.data() + first, *lower = lower_.data() + first;
    const T *x[width] = {};
    float own[width], above[width],
        below[width]; // distance to a, to the nearest, to the second
    float radius = 0.0f;
    for (int i = 0; i < count; ++i) {
        x[i] = rows_.values + (first + rows[i]) * rows_.d;
        own[i] = upper[rows[i]];
        radius = std::max(radius, 2.0f * own[i]);
    }
    float beyond = infinity;
    const int listed = kernels_.select(geometry_.distance(a), rows_.k, radius, scratch.list.data(), &beyond);
    scratch.looked += count;
    if (tiled_ && listed > filter_share(rows_.d) * rows_.k) {
        scratch.passed += count;
        std::copy_n(rows, count, scratch.dense.data() + scratch.dense_count);
        scratch.dense_count += count;
        return;
    }
    std::int32_t *list = scratch.list.data();
    std::fill_n(list + listed, list_panel, rows_.k); // the one at infinity
    const int lanes = (count + list_step - 1) / list_step * list_step;
    exact_.pack(x, count, rows_.d, lanes, scratch.block.data());
    search(scratch, lanes, list, (listed + list_panel - 1) / list_panel * list_panel);
    kernels_.roots(scratch.second.data(), lanes, above, below);
    kernels_.roots(scratch.best.data(), lanes, above, nullptr);
    for (int i = 0; i < count; ++i) {
        // No centroid outside the list is nearer.
        const float rest = listed == rows_.k ? infinity : (beyond - own[i]) * (1.0f - outward);
        labels[rows[i]] = static_cast<std::int32_t>(scratch.label[i]);
        lower[rows[i]] = std::min(below[i], rest);
        upper[rows[i]] = above[i];
    }
}

// Fills best, second and label of the block from the list, of whole panels.
template <typename T>
void Hamerly<T>::search(Scratch &scratch, int lanes, const std::int32_t *list, int listed)
{
    std::fill(scratch.best.begin(), scratch.best.end(), std::numeric_limits<double>::infinity());
    std::fill(scratch.second.begin(), scratch.second.end(), std::numeric_limits<double>::infinity());
    std::fill(scratch.label.begin(), scratch.label.end(), 0.0);
    const int per_call = static_cast<int>(
        std::max<std::int64_t>(1, work_per_poll / (std::int64_t{lanes} * rows_.d * list_panel)) * list_panel);
    for (int q = 0; q < listed; q += per_call) {
        if (q > 0)
            rows_.context.poll();
        exact_.nearest_listed(scratch.block.data(), lanes, rows_.d, geometry_.wide(), list + q,
                              std::min(per_call, listed - q), scratch.best.data(), scratch.second.data(),
                              scratch.label.data());
    }
}

// Labels and bounds of the listed rows by the filter.
template <typename T>
void Hamerly<T>::filter(int worker, std::int64_t first, const std::int32_t *rows, int count, std::int32_t *labels)
{
    for (int done = 0; done < count; done += tiled_width) {
        const int size = std::min(tiled_width, count - done);
        std::int64_t block[tiled_width];
        std::int32_t found[tiled_width];
        float upper[tiled_width], lower[tiled_width];
        for (int i = 0; i < size; ++i)
            block[i] = first + rows[done + i];
        rows_.context.poll();
        tiled_->assign_block(worker, block, size, found, {upper, lower});
        for (int i = 0; i < size; ++i) {
            labels[rows[done + i]] = found[i];
            upper_[block[i]] = upper[i];
            lower_[block[i]] = lower[i];
        }
    }
}

template class Hamerly<float>;
template class Hamerly<double>;

} // namespace pgkm::cpu
