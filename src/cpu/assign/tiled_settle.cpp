// tiled_settle.cpp - from candidates to labels: distances of the rows' own precision, then the contract's D.
#include "cpu/assign/tiled.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pgkm::cpu {

// Adds the hits of a range to the candidates of their rows. Later ranges lower the limits: when a row's list is full,
// what has fallen out is dropped, then what distances rule out.
template <typename T>
void Tiled<T>::collect(Scratch &own, std::int64_t first, std::int64_t hits) const
{
    FilterBlock &block = own.block;
    for (std::int64_t h = 0; h < hits; ++h) {
        Hit hit = block.hits[h];
        if (hit.point >= block.count || block.found[hit.point] < 0 || hit.score > block.limit[hit.point])
            continue; // without a bound a score may be anything, even -infinity
        std::int32_t &found = block.found[hit.point];
        if (found == max_candidates) {
            own.work += found;
            thin_out(own, hit.point, false);
            if (found > max_candidates / 2)
                thin_out(own, hit.point, true);
            rows_.context.poll();
            if (hit.score > block.limit[hit.point])
                continue;
        }
        hit.centroid += static_cast<std::int32_t>(first);
        own.candidates[hit.point * max_candidates + found++] = hit;
    }
}

// Keeps of a row's candidates those that may be nearest by their distances, or only the nearest (the first on a tie) by
// exact ones.
template <typename T>
void Tiled<T>::thin_out(Scratch &own, int row, bool exact) const
{
    FilterBlock &block = own.block;
    Hit *list = own.candidates.data() + row * max_candidates;
    std::int32_t &found = block.found[row];
    const float limit = block.limit[row];
    found = static_cast<std::int32_t>(
        std::remove_if(list, list + found, [&](const Hit &hit) { return hit.score > limit; }) - list);
    if (found < 2)
        return;
    const T *c[max_candidates] = {}, *x[max_candidates] = {};
    T estimates[max_candidates];
    double least = std::numeric_limits<double>::infinity(), squares[max_candidates];
    for (int h = 0; h < found; ++h) {
        c[h] = centroids_[list[h].centroid];
        x[h] = own.rows[row];
    }
    if (exact)
        exact_.pairs(x, c, found, rows_.d, squares);
    else
        exact_.estimates(own.rows[row], c, found, rows_.d, estimates);
    int nearest = 0;
    for (int h = 0; h < found; ++h) {
        if (!exact)
            squares[h] = static_cast<double>(estimates[h]);
        if (squares[h] < least) {
            least = squares[h];
            nearest = h;
        }
    }
    const double most = square_bounds_.above(least);
    int kept = 0;
    for (int h = 0; h < found; ++h) {
        const double low = square_bounds_.below(squares[h]);
        if (exact ? h == nearest : low <= most)
            list[kept++] = list[h];
        else
            own.lower[row] = std::min(own.lower[row], low);
    }
    found = kept;
    lower_limit(own, row, most);
}

// Labels of all rows with a bound: what estimates leave is settled by D.
template <typename T>
void Tiled<T>::settle(Scratch &own, std::int32_t *labels) const
{
    FilterBlock &block = own.block;
    const int count = block.count;
    int pairs = 0, first[tiled_width + 1] = {};
    const int per_poll = static_cast<int>(std::max<std::int64_t>(1, work_per_poll / (std::int64_t{rows_.d} * 8)));
    for (int i = 0; i < count; ++i) {
        first[i] = pairs;
        if (block.found[i] < 0)
            continue;
        ++own.seen;
        if (block.found[i] == 0) {
            labels[i] = centroids_.id(static_cast<std::int64_t>(block.index[i]));
            continue;
        }
        if (i % per_poll == 0)
            rows_.context.poll();
        own.work += block.found[i];
        thin_out(own, i, false);
        const Hit *list = own.candidates.data() + i * max_candidates;
        labels[i] = centroids_.id(list[0].centroid);
        if (block.found[i] == 1)
            continue;
        for (int h = 0; h < block.found[i]; ++h, ++pairs) {
            own.x[pairs] = own.rows[i];
            own.c[pairs] = centroids_[list[h].centroid];
            own.cluster[pairs] = centroids_.id(list[h].centroid);
        }
    }
    first[count] = pairs;
    const int batch = static_cast<int>(std::max<std::int64_t>(8, work_per_poll / rows_.d));
    for (int p = 0; p < pairs; p += batch) {
        rows_.context.poll();
        exact_.pairs(own.x.data() + p, own.c.data() + p, std::min(batch, pairs - p), rows_.d, own.result.data() + p);
    }
    for (int i = 0; i < count; ++i) {
        if (first[i + 1] == first[i])
            continue;
        const double *begin = own.result.data() + first[i], *end = own.result.data() + first[i + 1];
        const auto best = std::min_element(begin, end) - begin; // the first on a tie
        labels[i] = own.cluster[first[i] + best];
        for (const double *other = begin; other != end; ++other)
            if (other != begin + best)
                own.lower[i] = std::min(own.lower[i], square_bounds_.below(*other));
    }
}

// Rows without a bound go to exact distances to all centroids.
template <typename T>
void Tiled<T>::assign_open(Scratch &own, int worker, std::int32_t *labels)
{
    const FilterBlock &block = own.block;
    const T *open[tiled_width];
    std::int32_t found[tiled_width], where[tiled_width];
    int opens = 0;
    for (int i = 0; i < block.count; ++i)
        if (block.found[i] < 0) {
            where[opens] = i;
            open[opens++] = own.rows[i];
        }
    if (opens == 0)
        return;
    {
        const std::lock_guard lock(mutex_);
        if (!direct_)
            direct_ = std::make_unique<Direct<T>>(rows_);
        if (direct_round_ != round_)
            direct_->begin_alone(values_);
        direct_round_ = round_;
    }
    direct_->assign_rows(worker, open, opens, found, nullptr);
    for (int i = 0; i < opens; ++i)
        labels[where[i]] = found[i];
}

template void Tiled<float>::collect(Scratch &, std::int64_t, std::int64_t) const;
template void Tiled<float>::settle(Scratch &, std::int32_t *) const;
template void Tiled<float>::assign_open(Scratch &, int, std::int32_t *);
template void Tiled<double>::collect(Scratch &, std::int64_t, std::int64_t) const;
template void Tiled<double>::settle(Scratch &, std::int32_t *) const;
template void Tiled<double>::assign_open(Scratch &, int, std::int32_t *);

} // namespace pgkm::cpu
