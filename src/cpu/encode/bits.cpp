// bits.cpp - finds the two values of each feature, and makes lines of integers of centroids.
#include "cpu/encode/bits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

namespace pgkm::cpu {
namespace {

constexpr std::int64_t sampled = 256; // rows
constexpr int most_bits = 1024;       // of a row, whose scores' error is below the range then

constexpr double score_range = 60000.0;
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
            block.norm[i] = bits_->square(rows[i]);
            block.found[i] = 0;
        }
    }

    void score(FilterBlock &block, std::int64_t, std::int64_t) const override
    {
        kernels_.score(block.bits, block.count, rows_.d, {start_.data(), steps_.data(), used_}, block.sums.data(),
                       block.sizes, block.lowest(0));
        for (int i = 0; i < block.count; ++i)
            block.limit[i] = block.best[i] + static_cast<float>(slack(block, i));
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
        return most / unit_ + slack(block, i) / 2.0;
    }

    void squares(const FilterBlock &block, const float *others, double *most, double *least) const override
    {
        const double rounding = bits_->reach() * bits_->reach() * 0x1p-30;
        for (int i = 0; i < block.count; ++i) {
            const double own = block.norm[i] + lowest_, error = slack(block, i) / 2.0;
            most[i] = std::max(0.0, own + (static_cast<double>(block.limit[i]) + error) * unit_ + rounding);
            least[i] = std::max(0.0, own + (static_cast<double>(others[i]) - error) * unit_ - rounding);
        }
    }

    bool set(const DifferentCentroids<T> &centroids) override;

  private:
    // 2 e of the i-th row, rounded up.
    static int slack(const FilterBlock &block, int i) { return block.sizes[i] + 2 + block.sizes[i] / 256; }

    Rows<T> rows_;
    std::shared_ptr<const BitRows<T>> bits_;
    const BitKernels &kernels_;
    std::int64_t width_;
    Buffer<std::uint16_t> start_, steps_;
    std::int64_t used_ = 0; // centroids, filled up
    double unit_ = 1.0;     // u
    double lowest_ = 0.0;   // L - E u
};

template <typename T>
bool BitFilter<T>::set(const DifferentCentroids<T> &centroids)
{
    const std::int64_t count = centroids.count();
    const double reach = bits_->reach();
    const std::vector<double> &mean = bits_->mean();
    const std::vector<T> &usual = bits_->usual(), &other = bits_->other();
    const std::int64_t d = rows_.d;
    used_ = (count + bit_step - 1) / bit_step * bit_step;
    std::vector<double> squares(count), starts(count);
    const std::int64_t per_task = std::max<std::int64_t>(1, 16384 / d);
    rows_.for_ranges(count, per_task, [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j) {
            const T *c = centroids[j];
            for (std::int64_t f = 0; f < d; ++f) {
                const double away = mean[f] - static_cast<double>(c[f]);
                squares[j] += away * away;
                starts[j] += away * (2.0 * static_cast<double>(usual[f]) - static_cast<double>(c[f]) - mean[f]);
            }
        }
    });
    double farthest = 0.0;
    for (const double square : squares)
        farthest = square <= farthest ? farthest : square; // also where it is not a number
    const double far = std::sqrt(farthest) * more, both = reach + far;
    const double least = far > reach ? -reach * reach : far * far - 2.0 * reach * far;
    unit_ = std::max((far * far + 2.0 * reach * far - least) / score_range,
                     both * both * static_cast<double>(d + 4) * 0x1p-38);
    if (!(unit_ < 0x1p900) || unit_ < 0x1p-900)
        return false;
    lowest_ = least - (bits_->most() + 2.0) * unit_;
    const auto integer = [&](double value) {
        return static_cast<std::uint16_t>(static_cast<std::int64_t>(std::nearbyint(value / unit_)));
    };
    rows_.for_ranges(used_, per_task, [&](std::int64_t j, std::int64_t last, int) {
        for (; j < last; ++j) {
            const std::int64_t panel = j / bit_panel * bit_panel, width = std::min(bit_panel, used_ - panel);
            std::uint16_t *steps = steps_.data() + panel * d + j - panel;
            if (j >= count) { // it only fills a vector up, and is beyond all
                start_[j] = 0xffff;
                for (std::int64_t f = 0; f < d; ++f)
                    steps[f * width] = 0;
                continue;
            }
            const T *c = centroids[j];
            start_[j] = integer(starts[j] - lowest_);
            for (std::int64_t f = 0; f < d; ++f)
                steps[f * width] = integer(2.0 * (static_cast<double>(other[f]) - static_cast<double>(usual[f])) *
                                           (mean[f] - static_cast<double>(c[f])));
        }
    });
    return true;
}

} // namespace

template <typename T>
BitRows<T>::BitRows(const Rows<T> &rows)
    : words_((rows.d + 63) / 64), usual_(rows.row(0), rows.row(0) + rows.d), other_(usual_),
      mean_(usual_.begin(), usual_.end())
{
}

template <typename T>
std::shared_ptr<const BitRows<T>> BitRows<T>::make(const Rows<T> &rows, bool &can_be)
{
    std::shared_ptr<BitRows> made(new BitRows(rows));
    // All of a few rows first: most data end here.
    can_be = rows.d < 1 << 16 && made->sample(rows);
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows.n) * static_cast<std::uint64_t>(made->words_ + 1) * 8;
    if (!can_be || !rows.context.budget.allows(bytes + (std::uint64_t{1} << 18) * rows.pool.size()))
        return nullptr;
    can_be = made->fill(rows);
    return can_be ? made : nullptr;
}

// The two values of each feature in a few rows; false where there are three.
template <typename T>
bool BitRows<T>::sample(const Rows<T> &rows)
{
    const std::int64_t count = std::min(rows.n, sampled);
    std::vector<std::int64_t> others(rows.d, 0);
    for (std::int64_t i = 1; i < count; ++i) {
        const T *x = rows.row(i * rows.n / count);
        for (std::int32_t f = 0; f < rows.d; ++f) {
            if (x[f] == usual_[f])
                continue;
            if (other_[f] == usual_[f])
                other_[f] = x[f];
            if (x[f] != other_[f])
                return false;
            ++others[f];
        }
    }
    for (std::int32_t f = 0; f < rows.d; ++f) {
        if (2 * others[f] > count) {
            std::swap(usual_[f], other_[f]);
            others[f] = count - others[f];
        }
        const double usual = static_cast<double>(usual_[f]), other = static_cast<double>(other_[f]);
        mean_[f] = usual + (other - usual) * static_cast<double>(others[f]) / static_cast<double>(count);
    }
    return true;
}

// The bits of all rows; false where a feature has a third value. The second one may first be seen here.
template <typename T>
bool BitRows<T>::fill(const Rows<T> &rows)
{
    bits_ = Buffer<std::uint64_t>(rows.context.budget, rows.n * words_);
    squares_ = Buffer<double>(rows.context.budget, rows.n);
    double without = 0.0; // |a - m|^2
    for (std::int32_t f = 0; f < rows.d; ++f) {
        const double away = static_cast<double>(usual_[f]) - mean_[f];
        without += away * away;
    }
    const BitKernels &kernels = bit_kernels(rows.context.instruction_set);
    std::mutex mutex;
    std::atomic<bool> holds = true;
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
    for_blocks(rows, cached_rows(rows), [&](int worker, std::int64_t first, int count) {
        Most &own = found[worker];
        for (std::int64_t i = first; i < first + count && holds; ++i) {
            const T *x = rows.row(i);
            std::uint64_t *bits = bits_.data() + i * words_;
            if (!kernels.mark(x, rows.d, usual_.data(), own.other.data(), bits)) {
                const std::lock_guard lock(mutex);
                for (std::int32_t f = 0; f < rows.d; ++f)
                    if (x[f] != usual_[f] && other_[f] == usual_[f])
                        other_[f] = x[f];
                own.other = other_;
                own.steps = steps();
                if (!kernels.mark(x, rows.d, usual_.data(), own.other.data(), bits))
                    holds = false;
            }
            double square = without;
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
    reach_ = std::sqrt(std::max(square, without)) * more;
    return holds && std::isfinite(reach_);
}

template <typename T>
bool BitRows<T>::counts_distances() const
{
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
