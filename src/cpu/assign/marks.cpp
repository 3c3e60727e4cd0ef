// marks.cpp - finds the two values of each feature, and makes lines of integers of centroids.
#include "cpu/assign/marks.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

namespace pgkm::cpu {
namespace {

constexpr std::int64_t sampled = 256;         // rows
constexpr int most_marks = 1024;              // of a row
constexpr std::int64_t most_centroids = 4096; // a block's scores stay in cache
constexpr double score_range = 60000.0;
constexpr double more = 1.0 + 0x1p-30; // roundings of sums of squares

} // namespace

template <typename T>
Marks<T>::Marks(const Rows<T> &rows)
    : rows_(rows), kernels_(mark_kernels(rows.context.instruction_set)), words_((rows.d + 63) / 64),
      width_((rows.k + mark_step - 1) / mark_step * mark_step), usual_(rows.row(0), rows.row(0) + rows.d),
      other_(usual_), mean_(usual_.begin(), usual_.end())
{
}

template <typename T>
std::unique_ptr<Marks<T>> Marks<T>::make(const Rows<T> &rows)
{
    if (rows.k > most_centroids || rows.d >= 1 << 16)
        return nullptr;
    // All of a few rows first: most data end here.
    std::unique_ptr<Marks> marks(new Marks(rows));
    if (!marks->sample())
        return nullptr;
    const auto width = static_cast<std::uint64_t>(marks->width_), d = static_cast<std::uint64_t>(rows.d);
    const std::uint64_t of_worker = tiled_width * width * sizeof(std::uint16_t) + (1 << 18);
    const std::uint64_t of_rows = static_cast<std::uint64_t>(rows.n) * static_cast<std::uint64_t>(marks->words_) * 8;
    if (!rows.context.budget.allows(of_rows + 2 * (d + 1) * width + 8 * static_cast<std::uint64_t>(rows.n) +
                                    of_worker * rows.pool.size()))
        return nullptr;
    return marks->fill() ? std::move(marks) : nullptr;
}

// The two values of each feature in a few rows; false where there are three.
template <typename T>
bool Marks<T>::sample()
{
    const std::int64_t count = std::min(rows_.n, sampled);
    std::vector<std::int64_t> others(rows_.d, 0);
    for (std::int64_t i = 1; i < count; ++i) {
        const T *x = rows_.row(i * rows_.n / count);
        for (std::int32_t f = 0; f < rows_.d; ++f) {
            if (x[f] == usual_[f])
                continue;
            if (other_[f] == usual_[f])
                other_[f] = x[f];
            if (x[f] != other_[f])
                return false;
            ++others[f];
        }
    }
    for (std::int32_t f = 0; f < rows_.d; ++f) {
        if (2 * others[f] > count) {
            std::swap(usual_[f], other_[f]);
            others[f] = count - others[f];
        }
        const double usual = static_cast<double>(usual_[f]), other = static_cast<double>(other_[f]);
        mean_[f] = usual + (other - usual) * static_cast<double>(others[f]) / static_cast<double>(count);
    }
    return true;
}

// Marks all rows; false where a feature has a third value. The second one may first be seen here.
template <typename T>
bool Marks<T>::fill()
{
    bits_ = Buffer<std::uint64_t>(rows_.context.budget, rows_.n * words_);
    start_ = Buffer<std::uint16_t>(rows_.context.budget, width_);
    steps_ = Buffer<std::uint16_t>(rows_.context.budget, width_ * rows_.d);
    squares_ = Buffer<double>(rows_.context.budget, rows_.n);
    double without = 0.0; // |a - m|^2
    for (std::int32_t f = 0; f < rows_.d; ++f) {
        const double away = static_cast<double>(usual_[f]) - mean_[f];
        without += away * away;
    }
    std::mutex mutex;
    std::atomic<bool> holds = true;
    struct Most {
        std::vector<T> other;
        std::vector<double> steps; // what a mark adds to |x - m|^2
        double square = 0.0;
        int marks = 0;
    };
    const auto steps = [&] {
        std::vector<double> all;
        for (std::int32_t f = 0; f < rows_.d; ++f) {
            const double from = static_cast<double>(usual_[f]) - mean_[f];
            const double to = static_cast<double>(other_[f]) - mean_[f];
            all.push_back(to * to - from * from);
        }
        return all;
    };
    std::vector<Most> found(rows_.pool.size(), {other_, steps()});
    for_blocks(rows_, cached_rows(rows_), [&](int worker, std::int64_t first, int count) {
        Most &own = found[worker];
        for (std::int64_t i = first; i < first + count && holds; ++i) {
            const T *x = rows_.row(i);
            std::uint64_t *bits = bits_.data() + i * words_;
            if (!kernels_.mark(x, rows_.d, usual_.data(), own.other.data(), bits)) {
                const std::lock_guard lock(mutex);
                for (std::int32_t f = 0; f < rows_.d; ++f)
                    if (x[f] != usual_[f] && other_[f] == usual_[f])
                        other_[f] = x[f];
                own.other = other_;
                own.steps = steps();
                if (!kernels_.mark(x, rows_.d, usual_.data(), own.other.data(), bits))
                    holds = false;
            }
            double square = without;
            int marks = 0;
            for (std::int64_t w = 0; w < words_; ++w)
                for (std::uint64_t word = bits[w]; word != 0; word &= word - 1, ++marks)
                    square += own.steps[64 * w + __builtin_ctzll(word)];
            squares_[i] = square;
            own.square = square <= own.square ? own.square : square; // also where it is not a number
            own.marks = std::max(own.marks, marks);
        }
    });
    double square = 0.0;
    for (const Most &most : found) {
        square = most.square <= square ? square : most.square;
        most_ = std::max(most_, most.marks);
    }
    reach_ = std::sqrt(std::max(square, without)) * more;
    return holds && std::isfinite(reach_) && most_ <= most_marks;
}

template <typename T>
bool Marks<T>::set(const T *centroids, const std::int32_t *ids, std::int64_t count)
{
    const std::int64_t d = rows_.d;
    used_ = (count + mark_step - 1) / mark_step * mark_step;
    std::vector<double> squares(count), starts(count);
    const std::int64_t per_task = std::max<std::int64_t>(1, 16384 / d);
    rows_.for_ranges(count, per_task, [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j) {
            const T *c = centroids + std::int64_t{ids[j]} * d;
            for (std::int64_t f = 0; f < d; ++f) {
                const double away = mean_[f] - static_cast<double>(c[f]);
                squares[j] += away * away;
                starts[j] += away * (2.0 * static_cast<double>(usual_[f]) - static_cast<double>(c[f]) - mean_[f]);
            }
        }
    });
    double farthest = 0.0;
    for (const double square : squares)
        farthest = square <= farthest ? farthest : square; // also where it is not a number
    const double far = std::sqrt(farthest) * more, both = reach_ + far;
    const double least = far > reach_ ? -reach_ * reach_ : far * far - 2.0 * reach_ * far;
    unit_ = std::max((far * far + 2.0 * reach_ * far - least) / score_range,
                     both * both * static_cast<double>(d + 4) * 0x1p-38);
    if (!(unit_ < 0x1p900) || unit_ < 0x1p-900)
        return false;
    lowest_ = least - (most_ + 2.0) * unit_;
    const auto integer = [&](double value) {
        return static_cast<std::uint16_t>(static_cast<std::int64_t>(std::nearbyint(value / unit_)));
    };
    rows_.for_ranges(used_, per_task, [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j) {
            const std::int64_t panel = j / mark_panel * mark_panel, width = std::min(mark_panel, used_ - panel);
            std::uint16_t *steps = steps_.data() + panel * d + j - panel;
            if (j >= count) { // it only fills a vector up, and is beyond all
                start_[j] = 0xffff;
                for (std::int64_t f = 0; f < d; ++f)
                    steps[f * width] = 0;
                continue;
            }
            const T *c = centroids + std::int64_t{ids[j]} * d;
            start_[j] = integer(starts[j] - lowest_);
            for (std::int64_t f = 0; f < d; ++f)
                steps[f * width] = integer(2.0 * (static_cast<double>(other_[f]) - static_cast<double>(usual_[f])) *
                                           (mean_[f] - static_cast<double>(c[f])));
        }
    });
    return true;
}

template <typename T>
void Marks<T>::score(MarkScratch &scratch, const std::int64_t *rows, int count, const Lowest &lowest,
                     float *limit) const
{
    const std::uint64_t *bits[tiled_width] = {};
    for (int i = 0; i < count; ++i) {
        bits[i] = bits_.data() + rows[i] * words_;
        scratch.squares[i] = squares_[rows[i]];
    }
    kernels_.score(bits, count, rows_.d, {start_.data(), steps_.data(), used_}, scratch.scores.data(), scratch.sizes,
                   lowest);
    for (int i = 0; i < count; ++i)
        limit[i] = lowest.best[i] + static_cast<float>(slack(scratch, i));
}

template <typename T>
void Marks<T>::squares(const MarkScratch &scratch, int count, const float *scores, const float *others, double *most,
                       double *least) const
{
    const double rounding = reach_ * reach_ * 0x1p-30;
    for (int i = 0; i < count; ++i) {
        const double own = scratch.squares[i] + lowest_, error = slack(scratch, i) / 2.0;
        most[i] = std::max(0.0, own + (static_cast<double>(scores[i]) + error) * unit_ + rounding);
        least[i] = std::max(0.0, own + (static_cast<double>(others[i]) - error) * unit_ - rounding);
    }
}

template <typename T>
double Marks<T>::score_above(const MarkScratch &scratch, int i, double square) const
{
    const double most = square * more - scratch.squares[i] - lowest_ + reach_ * reach_ * 0x1p-30;
    return most / unit_ + slack(scratch, i) / 2.0;
}

template class Marks<float>;
template class Marks<double>;

} // namespace pgkm::cpu
