// geometry.cpp - distances between the centroids, and how far each drifted.
#include "cpu/assign/geometry.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pgkm::cpu {
namespace {

constexpr int width = block_step;

} // namespace

template <typename T>
Geometry<T>::Geometry(const Rows<T> &rows)
    : rows_(rows), kernels_(exact_kernels(rows.context.instruction_set)), k_(rows.k),
      previous_(rows.context.budget, std::int64_t{k_} * rows.d), own_(rows.context.budget, k_, 0.0f),
      others_(rows.context.budget, k_, 0.0f), half_(rows.context.budget, k_, 0.0f)
{
}

template <typename T>
Geometry<T>::Room::Room(const Rows<T> &rows)
    : wide(rows.context.budget, rows.k, rows.d), distance(rows.context.budget, std::int64_t{rows.k} * rows.k),
      all(rows.context.budget, rows.k),
      at_once(static_cast<std::int32_t>(
          std::clamp<std::int64_t>(work_per_poll / (std::int64_t{width} * rows.d) / list_panel, 1, 64) * list_panel))
{
    std::iota(all.begin(), all.end(), 0);
    for (int worker = 0; worker < rows.pool.size(); ++worker) {
        block.emplace_back(rows.context.budget, std::int64_t{width} * rows.d);
        squares.emplace_back(rows.context.budget, std::int64_t{width} * at_once);
        apart.emplace_back(rows.context.budget, std::int64_t{width} * at_once);
    }
}

template <typename T>
void Geometry<T>::set(const T *centroids, bool distances)
{
    follow(centroids);
    first_ = false;
    if (distances) {
        if (!room_)
            room_ = std::make_unique<Room>(rows_);
        room_->wide.set(previous_.data(), rows_);
        measure();
    } else
        std::fill(half_.begin(), half_.end(), 0.0f);
}

// Takes the centroids over and sees how far they drifted.
template <typename T>
void Geometry<T>::follow(const T *centroids)
{
    const std::int64_t d = rows_.d, per_task = std::clamp<std::int64_t>(65536 / d, 1, 64);
    rows_.for_ranges(k_, per_task, [&](std::int64_t first, std::int64_t last, int) {
        const std::int64_t count = last - first;
        if (!first_) {
            const T *now[64] = {}, *before[64] = {};
            double squares[64];
            for (std::int64_t i = 0; i < count; ++i) {
                now[i] = centroids + (first + i) * d;
                before[i] = previous_.data() + (first + i) * d;
            }
            kernels_.pairs(now, before, count, rows_.d, squares);
            for (std::int64_t i = 0; i < count; ++i)
                own_[first + i] = squares[i] == 0.0 ? 0.0f : distance_above(squares[i]);
        }
        std::copy_n(centroids + first * d, count * d, previous_.data() + first * d);
    });
    const float *largest = std::max_element(own_.begin(), own_.end());
    float next = 0.0f;
    for (const float &drift : own_)
        if (&drift != largest)
            next = std::max(next, drift);
    std::fill(others_.begin(), others_.end(), *largest);
    others_[largest - own_.begin()] = next;
}

// Centroids as blocks of points against all centroids.
template <typename T>
void Geometry<T>::measure()
{
    Room &room = *room_;
    rows_.for_ranges(k_, width, [&](std::int64_t first, std::int64_t last, int worker) {
        double *points = room.block[worker].data();
        double *squares = room.squares[worker].data();
        float *own = room.apart[worker].data();
        const int count = static_cast<int>(last - first);
        const T *rows[width];
        float nearest[width];
        for (int i = 0; i < count; ++i)
            rows[i] = previous_.data() + (first + i) * rows_.d;
        std::fill_n(nearest, width, std::numeric_limits<float>::infinity());
        kernels_.pack(rows, count, rows_.d, width, points);
        for (std::int32_t j = 0; j < k_; j += room.at_once) {
            rows_.context.poll();
            const int size = std::min(room.at_once, k_ - j);
            kernels_.distances(points, width, rows_.d, room.wide.data(), room.all.data() + j, size, squares);
            list_kernels(rows_.context.instruction_set).roots(squares, size * width, nullptr, own);
            for (int q = 0; q < size; ++q) {
                float *line = own + std::ptrdiff_t{q} * width;
                // Distances are symmetric: these go to the line of the other centroid.
                std::copy_n(line, count, room.distance.data() + std::int64_t{j + q} * k_ + first);
                if (j + q >= first && j + q < last)
                    line[j + q - first] = std::numeric_limits<float>::infinity();
                for (int i = 0; i < width; ++i)
                    nearest[i] = std::min(nearest[i], line[i]);
            }
        }
        for (int i = 0; i < count; ++i)
            half_[first + i] = nearest[i] * 0.5f;
    });
}

template <typename T>
std::vector<std::int32_t> Geometry<T>::spread(std::int32_t count) const
{
    std::vector<std::int32_t> chosen = {0};
    std::vector<float> nearest(distance(0), distance(0) + k_);
    while (static_cast<std::int32_t>(chosen.size()) < count) {
        const auto farthest =
            static_cast<std::int32_t>(std::max_element(nearest.begin(), nearest.end()) - nearest.begin());
        chosen.push_back(farthest);
        for (std::int32_t j = 0; j < k_; ++j)
            nearest[j] = std::min(nearest[j], distance(farthest)[j]);
    }
    return chosen;
}

template class Geometry<float>;
template class Geometry<double>;

} // namespace pgkm::cpu
