// hamerly_filter.cpp - rows that the bounds leave, without lists of centroids: the filter, or few centroids, meet all.
#include "cpu/assign/hamerly.hpp"

#include <algorithm>
#include <numeric>

namespace pgkm::cpu {

// Labels and bounds of the active rows by assign(rows, size, labels, bounds) of a block of them.
template <typename T>
template <typename Assign>
void Hamerly<T>::by_blocks(const Scratch &scratch, std::int64_t first, int active, std::int32_t *labels,
                           Assign &&assign)
{
    for (int done = 0; done < active; done += tiled_width) {
        const int size = std::min(tiled_width, active - done);
        const std::int32_t *list = scratch.active.data() + done;
        std::int64_t rows[tiled_width];
        std::int32_t found[tiled_width];
        float upper[tiled_width], lower[tiled_width];
        for (int i = 0; i < size; ++i)
            rows[i] = first + list[i];
        assign(rows, size, found, {upper, lower});
        for (int i = 0; i < size; ++i) {
            labels[list[i]] = found[i];
            upper_[rows[i]] = upper[i];
            lower_[rows[i]] = lower[i];
        }
    }
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

// Rows that the bounds leave go to the filter.
template <typename T>
void Hamerly<T>::assign_by_filter(Scratch &scratch, int worker, std::int64_t first, int count, std::int32_t *labels)
{
    filter(scratch, worker, first, screen(scratch, first, count, labels), labels);
}

// Or they are compared with all centroids.
template <typename T>
void Hamerly<T>::assign_by_few(Scratch &scratch, std::int64_t first, int count, std::int32_t *labels)
{
    const int active = screen(scratch, first, count, labels);
    by_blocks(scratch, first, active, labels,
              [&](const std::int64_t *rows, int size, std::int32_t *found, const Bounds &bounds) {
                  few_->assign_block(rows, size, found, bounds);
              });
}

// Labels the active rows by the filter. If that spares enough of them, their upper bounds are made exact first.
template <typename T>
void Hamerly<T>::filter(Scratch &scratch, int worker, std::int64_t first, int active, std::int32_t *labels)
{
    if (!first_ && !tiled_->has_marks() && (scratch.tried < trial_rows || scratch.kept * 4 < scratch.tried * 3))
        active = tighten_alone(scratch, first, active, labels);
    by_blocks(scratch, first, active, labels,
              [&](const std::int64_t *rows, int size, std::int32_t *found, const Bounds &bounds) {
                  rows_.context.poll();
                  tiled_->assign_block(worker, rows, size, found, bounds);
              });
}

// Replaces the upper bounds of the active rows by their distances, and keeps those that must be searched.
template <typename T>
int Hamerly<T>::tighten_alone(Scratch &scratch, std::int64_t first, int active, const std::int32_t *labels)
{
    const PairKernels &pairs = pair_kernels(rows_.context.instruction_set);
    const std::int64_t per_poll = std::max<std::int64_t>(1, work_per_poll / rows_.d);
    const Drift drift = geometry_.drift();
    int open = 0;
    for (int i = 0; i < active; ++i) {
        const std::int32_t row = scratch.active[i], label = labels[row];
        const T *own = centroids_ + std::int64_t{label} * rows_.d;
        if (i % per_poll == 0)
            rows_.context.poll();
        T square;
        pairs.estimates(rows_.row(first + row), &own, 1, rows_.d, &square);
        const float upper = distance_above(tiled_->square_bounds().above(static_cast<double>(square)));
        upper_[first + row] = upper;
        if (!(upper < std::max(lower_[first + row], drift.half[label])))
            scratch.active[open++] = row;
    }
    scratch.tried += active;
    scratch.kept += open;
    return open;
}

template void Hamerly<float>::assign_by_filter(Scratch &, int, std::int64_t, int, std::int32_t *);
template void Hamerly<float>::assign_by_few(Scratch &, std::int64_t, int, std::int32_t *);
template void Hamerly<float>::filter(Scratch &, int, std::int64_t, int, std::int32_t *);
template void Hamerly<double>::assign_by_filter(Scratch &, int, std::int64_t, int, std::int32_t *);
template void Hamerly<double>::assign_by_few(Scratch &, std::int64_t, int, std::int32_t *);
template void Hamerly<double>::filter(Scratch &, int, std::int64_t, int, std::int32_t *);

} // namespace pgkm::cpu
