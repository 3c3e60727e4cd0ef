// direct.cpp - exact distances to every centroid, block by block of rows.
#include "cpu/assign/direct.hpp"

#include <algorithm>
#include <limits>

namespace pgkm::cpu {
namespace {

constexpr int max_width = 2 * block_step;

// So few rows of so many features are compared one by one, rather than in a block that is filled up.
constexpr int few_rows = 4;
constexpr std::int32_t many_features = 4096;

// A block and a panel should stay in the second-level cache.
int block_width(std::int32_t d)
{
    return d <= 512 ? max_width : block_step;
}

} // namespace

DirectScratch::DirectScratch(Budget &budget, std::int32_t d, int width)
    : block(budget, std::int64_t{d} * width), best(budget, width), label(budget, width)
{
}

template <typename T>
Direct<T>::Direct(const Rows<T> &rows)
    : rows_(rows), width_(block_width(rows.d)), kernels_(exact_kernels(rows.context.instruction_set)),
      wide_(rows.context.budget, rows.k, rows.d), scratch_(rows.pool.size())
{
}

template <typename T>
void Direct<T>::begin(const T *centroids)
{
    centroids_ = centroids;
    wide_.set(centroids, rows_);
}

template <typename T>
void Direct<T>::begin_alone(const T *centroids)
{
    ThreadPool alone(1);
    centroids_ = centroids;
    wide_.set(centroids, Rows<T>(rows_, alone));
}

template <typename T>
void Direct<T>::assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances)
{
    if (rows_.k == 1 && distances == nullptr) {
        std::fill_n(labels, count, 0);
        return;
    }
    const T *rows[max_width] = {};
    for (int done = 0; done < count; done += max_width) {
        const int size = std::min(max_width, count - done);
        for (int i = 0; i < size; ++i)
            rows[i] = rows_.values + (first + done + i) * rows_.d;
        assign_rows(worker, rows, size, labels + done, distances == nullptr ? nullptr : distances + done);
    }
}

template <typename T>
void Direct<T>::assign_rows(int worker, const T *const *rows, int count, std::int32_t *labels, double *distances)
{
    for (int done = 0; done < count; done += width_)
        assign_block(worker, rows + done, std::min(width_, count - done), labels + done,
                     distances == nullptr ? nullptr : distances + done);
}

// Each row with some centroids at a time.
template <typename T>
void Direct<T>::assign_few(const T *const *rows, int count, std::int32_t *labels, double *distances)
{
    constexpr std::int32_t batch = 8;
    for (int i = 0; i < count; ++i) {
        double best = std::numeric_limits<double>::infinity();
        for (std::int32_t first = 0; first < rows_.k; first += batch) {
            rows_.context.poll();
            const std::int32_t size = std::min(batch, rows_.k - first);
            const T *x[batch], *c[batch];
            double squares[batch];
            for (std::int32_t j = 0; j < size; ++j) {
                x[j] = rows[i];
                c[j] = centroids_ + std::int64_t{first + j} * rows_.d;
            }
            kernels_.pairs(x, c, size, rows_.d, squares);
            for (std::int32_t j = 0; j < size; ++j)
                if (squares[j] < best) {
                    best = squares[j];
                    labels[i] = first + j;
                }
        }
        if (distances != nullptr)
            distances[i] = best;
    }
}

template <typename T>
void Direct<T>::assign_block(int worker, const T *const *rows, int count, std::int32_t *labels, double *distances)
{
    if (count <= few_rows && rows_.d >= many_features)
        return assign_few(rows, count, labels, distances);
    auto &made = scratch_[worker];
    if (!made)
        made = std::make_unique<DirectScratch>(rows_.context.budget, rows_.d, width_);
    DirectScratch &scratch = *made;
    // A small rest needs no full block.
    const int width = (count + block_step - 1) / block_step * block_step;
    kernels_.pack(rows, count, rows_.d, width, scratch.block.data());
    std::fill_n(scratch.best.data(), width, std::numeric_limits<double>::infinity());
    std::fill_n(scratch.label.data(), width, 0.0);
    // Centroids that stay in half of the first-level cache while all points of the block pass.
    constexpr std::int64_t cached_values = 2048;
    const std::int64_t per_call =
        std::max<std::int64_t>(1, cached_values / (list_panel * std::int64_t{rows_.d})) * list_panel;
    const std::int64_t per_poll = std::max<std::int64_t>(1, work_per_poll / (per_call * width * rows_.d)) * per_call;
    for (std::int64_t j = 0; j < rows_.k; j += per_call) {
        if (j > 0 && j % per_poll == 0)
            rows_.context.poll();
        const std::int64_t left = (rows_.k - j + list_panel - 1) / list_panel * list_panel;
        kernels_.nearest(scratch.block.data(), width, rows_.d, wide_.data(), j,
                         static_cast<int>(std::min(per_call, left)), scratch.best.data(), scratch.label.data());
    }
    for (int i = 0; i < count; ++i)
        labels[i] = static_cast<std::int32_t>(scratch.label[i]);
    if (distances != nullptr)
        std::copy_n(scratch.best.data(), count, distances);
}

template class Direct<float>;
template class Direct<double>;

} // namespace pgkm::cpu
