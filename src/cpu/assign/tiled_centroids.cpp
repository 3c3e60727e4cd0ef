// tiled_centroids.cpp - the centroids of an iteration for the filter: different ones alone, as panels of them or of
// their images; and how far they are from each other.
#include "cpu/assign/tiled.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "cpu/kernels/bounds.hpp"

namespace pgkm::cpu {
namespace {
// Assignments of a fit over which images are expected to pay.
constexpr double usual_passes = 10.0;
// Later centroids lie in the middle of their rows. So the remainders of their images are shorter, and a row has fewer
// candidates than in the first iteration: 0.2 to 0.6 of them on the sets that were tried.
constexpr double later_share = 0.6;

// Centroids whose scores are kept at a time: those of images are looked through for each row, others for few.
constexpr std::int64_t most_of_images = 512, most_narrow = 1024;

std::int64_t range_for(std::int64_t features, std::int64_t most)
{
    constexpr std::int64_t work = 16 * work_per_poll / tiled_width; // products between two looks at the cancel flag
    return std::clamp<std::int64_t>(work / features / tiled_panel * tiled_panel, tiled_panel, most);
}

// Of the bits of a point, by four chains.
template <typename T>
std::uint64_t hash(const T *values, std::int64_t d)
{
    std::uint64_t sums[4] = {0x9E3779B97F4A7C15U, 1, 2, 3};
    const auto add = [](std::uint64_t &sum, T value) {
        std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> bits;
        std::memcpy(&bits, &value, sizeof bits);
        sum = (sum ^ bits) * 0xFF51AFD7ED558CCDU;
        sum ^= sum >> 32;
    };
    std::int64_t f = 0;
    for (; f + 4 <= d; f += 4)
        for (int chain = 0; chain < 4; ++chain)
            add(sums[chain], values[f + chain]);
    for (; f < d; ++f)
        add(sums[0], values[f]);
    return sums[0] + 3 * sums[1] + 5 * sums[2] + 7 * sums[3];
}

} // namespace

template <typename T>
void Tiled<T>::begin(const T *centroids)
{
    const bool first = centroids_ == nullptr;
    centroids_ = centroids;
    ++round_;
    if (first)
        begin_first();
    number(centroids);
    if (images_)
        begin_images();
    else if (marks_)
        holds_ = marks_->set(centroids, ids_.data(), count_);
    else
        holds_ = narrow_->set(centroids, ids_.data(), count_);
    for (const auto &scratch : scratch_)
        if (scratch) {
            scratch->measures = false;
            scratch->seen = scratch->work = 0;
        }
}

// Marks, if rows have them; else images, if they pay, or narrow rows.
template <typename T>
void Tiled<T>::begin_first()
{
    Budget &budget = rows_.context.budget;
    const std::int64_t all = panel_count_ * tiled_panel;
    set_shift(centroids_);
    try {
        marks_ = Marks<T>::make(rows_);
        if (marks_)
            return;
        const bool repeats = purpose_ == Purpose::iterations;
        images_ = Images<T>::make(rows_, shift_.data(), centroids_, repeats ? usual_passes : 1.0,
                                  repeats ? later_share : 1.0);
    } catch (const Error &error) { // other threads may have taken what room there was
        if (error.status() != PGKM_LIMIT)
            throw;
    }
    if (!images_) {
        // All workers' scores and hits, with as much to spare.
        const std::uint64_t bytes = 2 * most_narrow * tiled_width * (sizeof(float) + sizeof(Hit)) * rows_.pool.size();
        range_ = std::min(range_for(rows_.d, budget.allows(bytes) ? most_narrow : most_of_images), all);
        narrow_ =
            std::make_unique<Narrow<T>>(rows_, shift_.data(), longest_of(centroids_), purpose_ == Purpose::iterations);
        return;
    }
    features_ = images_->features();
    range_ = std::min(range_for(features_, most_of_images), all);
    panels_ = Buffer<float>(budget, all * features_);
    start_ = Buffer<float>(budget, all);
    rest_ = Buffer<float>(budget, all, 0.0f);
}

// The length of the longest of a few centroids less the shift.
template <typename T>
double Tiled<T>::longest_of(const T *centroids) const
{
    double longest = 0.0;
    for (std::int64_t j = 0; j < rows_.k; j += (rows_.k + 255) / 256) {
        double square = 0.0;
        for (std::int64_t f = 0; f < rows_.d; ++f) {
            const double value = static_cast<double>(centroids[j * rows_.d + f]) - static_cast<double>(shift_[f]);
            square += value * value;
        }
        longest = std::max(longest, square);
    }
    return std::sqrt(longest);
}

template <typename T>
void Tiled<T>::begin_images()
{
    const std::int64_t panels = panels_for(count_);
    std::vector<double> lengths((count_ + tiled_width - 1) / tiled_width);
    rows_.for_ranges(count_, tiled_width, [&](std::int64_t j, std::int64_t, int worker) {
        lengths[j / tiled_width] = set_images(j, worker);
    });
    const double longest = *std::max_element(lengths.begin(), lengths.end());
    centroid_error_ = images_->error(longest);
    // Centroids that only fill the last panel score too high to be hit.
    std::fill(start_.begin() + count_, start_.begin() + panels * tiled_panel, largest_float);
    bound_ = ScoreBound(features_, longest, kernels_.fused);
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

// Numbers the different centroids: of equal ones only the first can be the nearest.
template <typename T>
void Tiled<T>::number(const T *centroids)
{
    std::vector<std::uint64_t> keys(rows_.k);
    rows_.for_ranges(rows_.k, std::max(1, 65536 / rows_.d), [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j)
            keys[j] = hash(centroids + j * rows_.d, rows_.d);
    });
    std::vector<std::int32_t> order(rows_.k);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](std::int32_t a, std::int32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
    std::vector<char> is_later(rows_.k, 0);
    std::fill(has_twin_.begin(), has_twin_.end(), 0);
    std::int32_t first = 0;
    for (std::int32_t i = 1; i < rows_.k; ++i) {
        const T *a = centroids + std::int64_t{order[first]} * rows_.d;
        const T *b = centroids + std::int64_t{order[i]} * rows_.d;
        if (keys[order[i]] == keys[order[first]] && std::memcmp(a, b, rows_.d * sizeof(T)) == 0)
            is_later[order[i]] = has_twin_[order[i]] = has_twin_[order[first]] = 1;
        else
            first = i;
    }
    count_ = 0;
    for (std::int32_t j = 0; j < rows_.k; ++j)
        if (is_later[j] == 0)
            ids_[count_++] = j;
    any_twin_ = count_ < rows_.k;
}

// The images of 64 centroids from `first` on, as panels. Returns the length of the longest, rounded up.
template <typename T>
double Tiled<T>::set_images(std::int64_t first, int worker)
{
    Scratch &own = scratch(worker);
    const T *points[tiled_width] = {};
    const std::int64_t count = std::min<std::int64_t>(tiled_width, count_ - first);
    for (std::int64_t i = 0; i < count; ++i)
        points[i] = centroid(first + i);
    kernels_.pack(points, static_cast<int>(count), rows_.d, shift_.data(), own.block.data());
    images_->project(own.block.data(), own.image.data());
    double longest = 0.0;
    for (std::int64_t i = 0; i < panels_for(count) * tiled_panel; ++i) {
        const std::int64_t j = first + i;
        double square = 0.0;
        for (int f = 0; f < features_; ++f) {
            const float value = own.image[f * tiled_width + i];
            square += static_cast<double>(value) * static_cast<double>(value);
            panels_[(j / tiled_panel * features_ + f) * tiled_panel + j % tiled_panel] = i < count ? -value : 0.0f;
        }
        start_[j] = static_cast<float>(square / 2.0);
        rest_[j] = own.image[(features_ - 1) * tiled_width + i];
        const double length = std::sqrt(square) * (1.0 + static_cast<double>(features_ + 8) * 0x1p-52) + 0x1p-500;
        // Also where it is not a number.
        longest = length <= longest ? longest : length < largest_float ? length : HUGE_VAL;
    }
    return longest;
}

template <typename T>
void Tiled<T>::halve_distances(float *half)
{
    std::fill_n(half, rows_.k, 0.0f);
    if (!images_)
        return;
    const std::int64_t all = panels_for(count_) * tiled_panel;
    rows_.for_ranges(count_, tiled_width, [&](std::int64_t first, std::int64_t last, int worker) {
        Scratch &own = scratch(worker);
        const int count = static_cast<int>(last - first);
        for (int i = 0; i < tiled_width; ++i) {
            const std::int64_t j = std::min<std::int64_t>(first + i, count_ - 1);
            for (int f = 0; f < features_; ++f)
                own.image[f * tiled_width + i] =
                    -panels_[(j / tiled_panel * features_ + f) * tiled_panel + j % tiled_panel];
        }
        forget(own);
        reach(own, count);
        for (std::int64_t c = 0; c < all; c += range_)
            multiply(own, c, std::min(range_, all - c) / tiled_panel);
        for (int i = 0; i < count; ++i) {
            const std::int32_t id = ids_[first + i];
            if (own.found[i] < 0 || has_twin_[id] != 0)
                continue;
            const bool own_is_best = static_cast<std::int64_t>(own.index[i]) == first + i;
            const double least = static_cast<double>(own_is_best ? own.second[i] : own.best[i]);
            const double square = bound_.square_below(static_cast<double>(own.square[i])) * (1.0 - 0x1p-50) +
                                  2.0 * (least - own.slack[i]);
            const double distance = std::sqrt(std::max(0.0, square)) - own.error[i] * (1.0 + 0x1p-40);
            half[id] = std::max(0.0f, distance_below(std::max(0.0, distance) * distance)) * 0.5f;
        }
    });
}

template void Tiled<float>::begin(const float *);
template void Tiled<double>::begin(const double *);
template void Tiled<float>::halve_distances(float *);
template void Tiled<double>::halve_distances(float *);

} // namespace pgkm::cpu
