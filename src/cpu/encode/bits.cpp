// bits.cpp - finds the two values of features, and makes lines of integers of centroids.
#include "cpu/encode/bits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

namespace pgkm::cpu {
namespace {

constexpr std::int64_t sampled = 256; // rows
constexpr int most_bits = 1024;       // of a row, whose scores' error is below the range then

// For each feature that is a number so many, at least: products are as fast otherwise. A number's farthest value is at
// most so many standard deviations out, since 16 bits of all rows would be coarse otherwise.
constexpr int features_for_number = 8;
constexpr double most_deviations = 6.0;
constexpr std::int64_t most_numbers = 128;
constexpr std::int64_t rows_for_strange = 256; // that fit, at least, for each that does not

constexpr double score_range = 60000.0;
constexpr double most_line = 32000.0;
constexpr double whole = 32767.0;      // of a number's value
constexpr double more = 1.0 + 0x1p-30; // roundings of sums of squares

template <typename T>
class BitFilter final : public Filter<T> {
  public:
    BitFilter(const Rows<T> &rows, std::shared_ptr<const BitRows<T>> bits)
        : rows_(rows), bits_(std::move(bits)), kernels_(bit_kernels(rows.context.instruction_set)),
          width_((rows.k + bit_step - 1) / bit_step * bit_step), start_(rows.context.budget, width_),
          steps_(rows.context.budget, width_ * rows.d)
    {
    }

    std::int64_t range() const override { return panels_for(rows_.k) * tiled_panel; } // all
    const char *name() const override { return "bits"; }
    bool is_quick() const override { return true; }
    bool is_dearer_than_a_distance() const override { return false; }

    void prepare(FilterBlock &block) const override
    {
        block.sums = Buffer<std::uint16_t>(rows_.context.budget, tiled_width * width_);
        block.hits = Buffer<Hit>(rows_.context.budget, tiled_width * width_);
    }

    void load(FilterBlock &block, const std::int64_t *rows, const T *const *) const override
    {
        for (int i = 0; i < block.count; ++i) {
            block.bits[i] = bits_->row(rows[i]);
            block.numbers[i] = bits_->values(rows[i]);
            block.norm[i] = bits_->square(rows[i]);
            block.slack[i] = bits_->numbers().empty() ? 0.0 : bits_->magnitude(rows[i]);
            block.found[i] = std::isfinite(block.norm[i]) ? 0 : -1;
        }
    }

    void score(FilterBlock &block, std::int64_t, std::int64_t) const override
    {
        const std::vector<std::int32_t> &numbers = bits_->numbers();
        kernels_.score(block.bits, block.numbers, block.count, rows_.d,
                       {start_.data(), steps_.data(), used_, numbers.data(), static_cast<int>(numbers.size())},
                       block.sums.data(), block.sizes, block.lowest(0));
        for (int i = 0; i < block.count; ++i) {
            const double exact = (block.slack[i] + lines_ + block.sizes[i] + 1.0) * (1.0 + 0x1p-9);
            block.slack[i] = std::ceil(exact);
            block.limit[i] = block.best[i] + static_cast<float>(block.slack[i]);
        }
    }

    std::int64_t pick(FilterBlock &block, std::int64_t, const float *search) const override
    {
        std::int64_t found = 0;
        for (int i = 0; i < block.count; ++i)
            if (search[i] >= 0.0f)
                found += kernels_.at_most(block.sums.data() + i * used_, used_, static_cast<int>(search[i]), i,
                                          block.hits.data() + found);
        return found;
    }

    double score_above(const FilterBlock &block, int i, double square) const override
    {
        const double reach = bits_->reach(), most = square * more - block.norm[i] - lowest_ + reach * reach * 0x1p-30;
        return most / unit_ + block.slack[i] / 2.0;
    }

    void squares(const FilterBlock &block, const float *others, double *most, double *least) const override
    {
        const double rounding = bits_->reach() * bits_->reach() * 0x1p-30;
        for (int i = 0; i < block.count; ++i) {
            const double own = block.norm[i] + lowest_, error = block.slack[i] / 2.0;
            most[i] = std::max(0.0, own + (static_cast<double>(block.limit[i]) + error) * unit_ + rounding);
            least[i] = std::max(0.0, own + (static_cast<double>(others[i]) - error) * unit_ - rounding);
        }
    }

    bool set(const DifferentCentroids<T> &centroids) override;

  private:
    Rows<T> rows_;
    std::shared_ptr<const BitRows<T>> bits_;
    const BitKernels &kernels_;
    std::int64_t width_;
    Buffer<std::uint16_t> start_, steps_;
    std::int64_t used_ = 0; // centroids, filled up
    double unit_ = 1.0;     // u
    double lowest_ = 0.0;   // L - E u
    double lines_ = 0.0;    // N + sum |l| 2^-15, of all centroids at most
};

template <typename T>
bool BitFilter<T>::set(const DifferentCentroids<T> &centroids)
{
    const std::int64_t count = centroids.count();
    const double reach = bits_->reach();
    const std::vector<double> &mean = bits_->mean();
    const std::int32_t d = rows_.d;
    used_ = (count + bit_step - 1) / bit_step * bit_step;
    std::vector<double> squares(count), starts(count), lines(count), longest(count);
    const std::int64_t per_task = std::max<std::int64_t>(1, 16384 / d);
    rows_.for_ranges(count, per_task, [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j) {
            const T *c = centroids[j];
            for (std::int32_t f = 0; f < d; ++f) {
                const double away = mean[f] - static_cast<double>(c[f]);
                squares[j] += away * away;
                starts[j] += away * ((bits_->start(f) - static_cast<double>(c[f])) + (bits_->start(f) - mean[f]));
            }
            for (const std::int32_t f : bits_->numbers()) {
                const double line = std::fabs(2.0 * bits_->step(f) * (mean[f] - static_cast<double>(c[f])));
                lines[j] += line;
                longest[j] = std::max(longest[j], line);
            }
        }
    });
    const auto most = [](const std::vector<double> &all) {
        double found = 0.0;
        for (const double each : all)
            found = each <= found ? found : each; // also where it is not a number
        return found;
    };
    const double farthest = most(squares);
    const double far = std::sqrt(farthest) * more, both = reach + far;
    const double least = far > reach ? -reach * reach : far * far - 2.0 * reach * far;
    unit_ = std::max({(far * far + 2.0 * reach * far - least) / score_range,
                      both * both * static_cast<double>(d + 4) * 0x1p-38, most(longest) / most_line});
    if (!(unit_ < 0x1p900) || unit_ < 0x1p-900)
        return false;
    const auto numbers = static_cast<double>(bits_->numbers().size());
    lines_ = numbers + most(lines) / unit_ * 0x1p-15;
    lowest_ = least - (bits_->most() + 2.0 + 2.0 * numbers) * unit_;
    // Steps may be beyond all bounds where only rows without one take them.
    const auto integer = [&](double value) {
        const double number = std::clamp(std::nearbyint(value / unit_), -0x1p62, 0x1p62);
        return static_cast<std::uint16_t>(static_cast<std::int64_t>(number));
    };
    rows_.for_ranges(used_, per_task, [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j) {
            const std::int64_t panel = j / bit_panel * bit_panel, width = std::min(bit_panel, used_ - panel);
            std::uint16_t *steps = steps_.data() + panel * d + j - panel;
            if (j >= count) { // it only fills a vector up, and is beyond all
                start_[j] = 0xffff;
                for (std::int32_t f = 0; f < d; ++f)
                    steps[f * width] = 0;
                continue;
            }
            const T *c = centroids[j];
            start_[j] = integer(starts[j] - lowest_);
            for (std::int32_t f = 0; f < d; ++f)
                steps[f * width] = integer(2.0 * bits_->step(f) * (mean[f] - static_cast<double>(c[f])));
        }
    });
    return true;
}

} // namespace

template <typename T>
BitRows<T>::BitRows(const Rows<T> &rows)
    : words_((rows.d + 63) / 64), usual_(rows.row(0), rows.row(0) + rows.d), other_(usual_),
      mean_(usual_.begin(), usual_.end()), marked_(words_, ~std::uint64_t{0})
{
}

template <typename T>
std::shared_ptr<const BitRows<T>> BitRows<T>::make(const Rows<T> &rows, bool &can_be)
{
    std::shared_ptr<BitRows> made(new BitRows(rows));
    // All of a few rows first: most data end here.
    can_be = rows.d < 1 << 16 && made->sample(rows);
    const std::int64_t of_row = (made->words_ + 1) * 8 + made->value_stride() * 2;
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows.n) * static_cast<std::uint64_t>(of_row);
    if (!can_be || !rows.context.budget.allows(bytes + (std::uint64_t{1} << 18) * rows.pool.size()))
        return nullptr;
    can_be = made->fill(rows);
    return can_be ? made : nullptr;
}

// The two values of each feature in a few rows, and how many have the other one; false where too many features take
// three.
template <typename T>
bool BitRows<T>::find_values(const Rows<T> &rows, std::vector<std::int64_t> &others)
{
    const std::int64_t count = std::min(rows.n, sampled);
    const std::int64_t most = std::min<std::int64_t>(most_numbers, rows.d / features_for_number);
    for (std::int64_t i = 1; i < count; ++i) {
        const T *x = rows.row(i * rows.n / count);
        for (std::int32_t f = 0; f < rows.d; ++f) {
            if (x[f] == usual_[f])
                continue;
            if (other_[f] == usual_[f])
                other_[f] = x[f];
            if (x[f] == other_[f]) {
                ++others[f];
            } else if (!is_number(f)) {
                if (std::ssize(numbers_) == most)
                    return false;
                marked_[f / 64] ^= std::uint64_t{1} << f % 64;
                numbers_.push_back(f);
            }
        }
    }
    return true;
}

template <typename T>
bool BitRows<T>::sample(const Rows<T> &rows)
{
    const std::int64_t count = std::min(rows.n, sampled);
    std::vector<std::int64_t> others(rows.d, 0);
    if (!find_values(rows, others))
        return false;
    const auto number = static_cast<double>(count);
    for (std::int32_t f = 0; f < rows.d; ++f) {
        if (2 * others[f] > count) {
            std::swap(usual_[f], other_[f]);
            others[f] = count - others[f];
        }
        const double usual = static_cast<double>(usual_[f]), other = static_cast<double>(other_[f]);
        mean_[f] = usual + (other - usual) * static_cast<double>(others[f]) / number;
    }
    steps_.resize(numbers_.empty() ? 0 : rows.d);
    for (const std::int32_t f : numbers_) {
        double mean = 0.0, farthest = 0.0, variance = 0.0;
        const auto value = [&](std::int64_t i) { return static_cast<double>(rows.row(i * rows.n / count)[f]); };
        for (std::int64_t i = 0; i < count; ++i)
            mean += value(i) / number;
        for (std::int64_t i = 0; i < count; ++i) {
            const double away = value(i) - mean;
            farthest = std::max(farthest, std::fabs(away));
            variance += away * away / number;
        }
        if (!(farthest <= most_deviations * std::sqrt(variance)))
            return false;
        mean_[f] = mean;
        steps_[f] = 2.0 * farthest; // few rows lie twice as far as those of the sample
    }
    return true;
}

// What a row has of numbers; returns the sum of their squares about the mean, infinite where one is far out.
template <typename T>
double BitRows<T>::fill_values(const T *x, std::int16_t *values) const
{
    double square = 0.0, magnitude = 0.0;
    for (const std::int32_t f : numbers_) {
        const double away = static_cast<double>(x[f]) - mean_[f], value = away / steps_[f];
        if (!(std::fabs(value) * 0x1p15 < whole))
            return HUGE_VAL;
        square += away * away;
        magnitude += std::fabs(value);
        *values++ = static_cast<std::int16_t>(static_cast<int>(std::nearbyint(value * 0x1p15)));
    }
    if (!numbers_.empty())
        *values = static_cast<std::int16_t>(static_cast<int>(magnitude * 0x1p6) + 1);
    return square;
}

// The bits of all rows; false where too many have a third value. The second one may first be seen here.
template <typename T>
bool BitRows<T>::fill(const Rows<T> &rows)
{
    bits_ = Buffer<std::uint64_t>(rows.context.budget, rows.n * words_);
    squares_ = Buffer<double>(rows.context.budget, rows.n);
    values_ = Buffer<std::int16_t>(rows.context.budget, rows.n * value_stride());
    double without = 0.0; // |a - m|^2
    for (std::int32_t f = 0; f < rows.d; ++f) {
        const double away = start(f) - mean_[f];
        without += away * away;
    }
    const BitKernels &kernels = bit_kernels(rows.context.instruction_set);
    std::mutex mutex;
    std::atomic<std::int64_t> strange = 0;
    const std::int64_t most_strange = rows.n / rows_for_strange;
    struct Most {
        std::vector<T> other;
        std::vector<double> steps; // what a bit adds to |x - m|^2
        double square = 0.0;
        int set = 0;
    };
    const auto steps = [&] {
        std::vector<double> all;
        for (std::int32_t f = 0; f < rows.d; ++f) {
            const double from = static_cast<double>(usual_[f]) - mean_[f];
            const double to = static_cast<double>(other_[f]) - mean_[f];
            all.push_back(to * to - from * from);
        }
        return all;
    };
    std::vector<Most> found(rows.pool.size(), {other_, steps()});
    const auto mark = [&](const T *x, Most &own, std::uint64_t *bits) {
        if (kernels.mark(x, rows.d, usual_.data(), own.other.data(), marked_.data(), bits))
            return true;
        const std::lock_guard lock(mutex);
        for (std::int32_t f = 0; f < rows.d; ++f)
            if (x[f] != usual_[f] && other_[f] == usual_[f])
                other_[f] = x[f];
        own.other = other_;
        own.steps = steps();
        return kernels.mark(x, rows.d, usual_.data(), own.other.data(), marked_.data(), bits);
    };
    for_blocks(rows, cached_rows(rows), [&](int worker, std::int64_t first, int count) {
        Most &own = found[worker];
        for (std::int64_t i = first; i < first + count && strange <= most_strange; ++i) {
            const T *x = rows.row(i);
            std::uint64_t *bits = bits_.data() + i * words_;
            squares_[i] = HUGE_VAL;
            double square = without + fill_values(x, values_.data() + i * value_stride());
            if (!std::isfinite(square) || !mark(x, own, bits)) {
                std::fill_n(bits, words_, 0);
                std::fill_n(values_.data() + i * value_stride(), value_stride(), 0);
                ++strange;
                continue;
            }
            int set = 0;
            for (std::int64_t w = 0; w < words_; ++w)
                for (std::uint64_t word = bits[w]; word != 0; word &= word - 1, ++set)
                    square += own.steps[64 * w + __builtin_ctzll(word)];
            squares_[i] = square;
            own.square = square <= own.square ? own.square : square; // also where it is not a number
            own.set = std::max(own.set, set);
        }
    });
    double square = 0.0;
    for (const Most &most : found) {
        square = most.square <= square ? square : most.square;
        most_ = std::max(most_, most.set);
    }
    strange_ = strange;
    reach_ = std::sqrt(std::max(square, without)) * more;
    return strange <= most_strange && std::isfinite(reach_);
}

template <typename T>
bool BitRows<T>::counts_distances() const
{
    if (!numbers_.empty() || strange_ > 0)
        return false;
    for (std::size_t f = 0; f < usual_.size(); ++f) {
        const double apart = std::fabs(static_cast<double>(usual_[f]) - static_cast<double>(other_[f]));
        if (apart != 0.0 && apart != 1.0)
            return false;
    }
    return true;
}

template <typename T>
std::unique_ptr<Filter<T>> bit_filter(const Rows<T> &rows, std::shared_ptr<const BitRows<T>> bits)
{
    if (rows.k > most_bit_centroids || bits->most() > most_bits)
        return nullptr;
    return std::make_unique<BitFilter<T>>(rows, std::move(bits));
}

template class BitRows<float>;
template class BitRows<double>;
template std::unique_ptr<Filter<float>> bit_filter(const Rows<float> &, std::shared_ptr<const BitRows<float>>);
template std::unique_ptr<Filter<double>> bit_filter(const Rows<double> &, std::shared_ptr<const BitRows<double>>);

} // namespace pgkm::cpu
