// int16.cpp - makes integers of rows and centroids, and turns scores into bounds on distances.
#include "cpu/encode/int16.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace pgkm::cpu {
namespace {

constexpr double unit = 0x1p-24; // of float32 rounding
constexpr double longest_centroid = 0x1p30;

// The square of (c - middle) * factor, by four sums.
template <typename T>
double centred_square(const T *c, const T *middle, std::int32_t d, double factor)
{
    const auto square = [&](std::int32_t f) {
        const double value = (static_cast<double>(c[f]) - static_cast<double>(middle[f])) * factor;
        return value * value;
    };
    double sums[4] = {};
    std::int32_t f = 0;
    for (; f + 4 <= d; f += 4)
        for (int i = 0; i < 4; ++i)
            sums[i] += square(f + i);
    for (; f < d; ++f)
        sums[0] += square(f);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <typename T>
class Int16Filter final : public Filter<T> {
  public:
    Int16Filter(const Rows<T> &rows, std::shared_ptr<const Int16Rows<T>> integers)
        : rows_(rows), integers_(std::move(integers)), code_(integers_->code()),
          kernels_(int16_kernels(rows.context.instruction_set)),
          score_kernels_(score_kernels(rows.context.instruction_set)), pairs_((rows.d + 1) / 2),
          centroids_(rows.context.budget, panels_for(rows.k) * tiled_panel, rows.d)
    {
        constexpr std::int64_t most = 1024;
        range_ = std::min(range_for(rows.d, most), panels_for(rows.k) * tiled_panel);
        for (int worker = 0; worker < rows.pool.size(); ++worker)
            rooms_.emplace_back(rows.context.budget, rows.d);
    }

    bool set(const DifferentCentroids<T> &centroids) override
    {
        const std::int64_t count = centroids.count(), panels = panels_for(count);
        if (rows_.d > Int16Code<T>::most_features || count < 1)
            return false;
        std::atomic<bool> holds = true;
        rows_.for_ranges(count, tiled_width, [&](std::int64_t first, std::int64_t last, int worker) {
            const int size = static_cast<int>(last - first);
            const T *points[tiled_width] = {};
            Int16Centroid about[tiled_width];
            for (int i = 0; i < size; ++i)
                points[i] = centroids[first + i];
            if (!encode_centroids(kernels_, code_, points, size, rooms_[worker], about))
                holds = false;
            for (int i = 0; i < size; ++i)
                centroids_.put(first + i, rooms_[worker], i, about[i]);
        });
        for (std::int64_t j = count; j < panels * tiled_panel; ++j)
            centroids_.put_none(j);
        return holds;
    }

    std::int64_t range() const override { return range_; }
    const char *name() const override { return "int16"; }
    bool is_quick() const override { return false; }

    void prepare(FilterBlock &block) const override
    {
        const std::int64_t words = std::int64_t{tiled_width} * int16_words(rows_.d);
        block.scores = Buffer<float>(rows_.context.budget, range_ * tiled_width);
        block.hits = Buffer<Hit>(rows_.context.budget, range_ * tiled_width);
        if (!integers_->is_kept())
            block.image = Buffer<float>(rows_.context.budget, std::int64_t{tiled_width} * rows_.d);
        block.words = Buffer<std::int32_t>(rows_.context.budget, words);
    }

    void load(FilterBlock &block, const std::int64_t *rows, const T *const *points) const override
    {
        if (integers_->is_kept()) {
            const std::int32_t *words[tiled_width] = {};
            for (int i = 0; i < block.count; ++i)
                words[i] = integers_->row(rows[i]);
            kernels_.pack(words, block.count, int16_words(rows_.d), block.words.data());
        } else {
            kernels_.encode(points, block.count, rows_.d, code_.middle, 1.0 / code_.unit, block.image.data(),
                            block.words.data());
        }
        const Int16Block packed(block.words.data());
        for (int i = 0; i < block.count; ++i)
            block.found[i] = packed.unit[i] > 0.0f ? 0 : -1;
    }

    void score(FilterBlock &block, std::int64_t first, std::int64_t size) const override
    {
        const double of_length = 3.1 * (rows_.d + 4.0) * 0x1p-51 * (most_int16_length + code_.row_residual);
        const Int16Block packed(block.words.data());
        const Lowest lowest = block.lowest(first);
        kernels_.score(packed, pairs_, centroids_.from(first), size, block.scores.data(), &lowest);
        kernels_.limits(packed, centroids_.from(0), lowest, static_cast<float>(of_length), block.limit);
    }

    std::int64_t pick(FilterBlock &block, std::int64_t size, const float *search) const override
    {
        return score_kernels_.at_most(block.scores.data(), size, search, block.hits.data());
    }

    double score_above(const FilterBlock &block, int i, double square) const override
    {
        const Int16Block packed(block.words.data());
        return code_.score_above(static_cast<double>(packed.square[i]), static_cast<double>(packed.unit[i]), square);
    }

    void squares(const FilterBlock &block, const float *others, double *most, double *least) const override
    {
        const Int16Block packed(block.words.data());
        const double error = code_.sum_error(), lost = code_.least_square(), scale = code_.unit * code_.unit;
        for (int i = 0; i < tiled_width; ++i) {
            const double own = static_cast<double>(packed.square[i]), step = 2.0 * static_cast<double>(packed.unit[i]);
            most[i] = std::max(0.0, own * (1.0 + error) + lost + step * static_cast<double>(block.limit[i])) *
                      (scale * (1.0 + 0x1p-49));
            least[i] = std::max(0.0, own * (1.0 - error) - lost + step * static_cast<double>(others[i])) *
                       (scale * (1.0 - 0x1p-49));
        }
    }

  private:
    Rows<T> rows_;
    std::shared_ptr<const Int16Rows<T>> integers_;
    Int16Code<T> code_;
    const Int16Kernels &kernels_;
    const ScoreKernels &score_kernels_;
    int pairs_;
    std::int64_t range_;
    Int16Store centroids_;
    std::vector<Int16Room> rooms_; // of each worker, for centroids
};

} // namespace

template <typename T>
double Int16Code<T>::unit_near(double length)
{
    int exponent = 0;
    if (length > 0.0 && std::isfinite(length))
        std::frexp(length, &exponent);
    return std::ldexp(1.0, std::clamp(exponent, -100, 100));
}

template <typename T>
double Int16Code<T>::residual_above(double measured) const
{
    return measured * (1.0 + 2.0 * 0x1p-24 * (d + 4.0)) + 0.004 * std::sqrt(d) + 0.01;
}

template <typename T>
double Int16Code<T>::most_residual() const
{
    return residual_above(0.505 * std::sqrt(static_cast<double>(d)));
}

template <typename T>
Int16Rows<T>::Int16Rows(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre)
    : centre_(std::move(centre)), code_{centre_->middle.data(), rows.d, Int16Code<T>::unit_near(centre_->length)}
{
    code_.row_residual = code_.most_residual();
}

template <typename T>
std::shared_ptr<const Int16Rows<T>> Int16Rows<T>::make(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre)
{
    constexpr std::uint64_t of_worker = 1 << 20; // room for what each worker allocates later
    const std::int64_t words = int16_words(rows.d);
    const auto made = std::make_shared<Int16Rows>(rows, std::move(centre));
    if (rows.d <= Int16Code<T>::most_features)
        made->words_ = Buffer<std::int32_t>::if_room(rows.context.budget, rows.n * words, of_worker * rows.pool.size());
    if (!made->is_kept())
        return nullptr;
    const Int16Kernels &kernels = int16_kernels(rows.context.instruction_set);
    Int16Code<T> &code = made->code_;
    std::vector<float> largest(rows.pool.size(), 0.0f);
    std::vector<Int16Room> rooms;
    for (int worker = 0; worker < rows.pool.size(); ++worker)
        rooms.emplace_back(rows.context.budget, rows.d);
    for_blocks(rows, tiled_width, [&](int worker, std::int64_t first, int count) {
        const T *points[tiled_width];
        for (int i = 0; i < count; ++i)
            points[i] = rows.row(first + i);
        Int16Room &room = rooms[worker];
        const float most =
            kernels.encode(points, count, rows.d, code.middle, 1.0 / code.unit, room.block.data(), room.words.data());
        kernels.unpack(room.words.data(), count, int16_head + (rows.d + 1) / 2, static_cast<int>(words),
                       made->words_.data() + first * words);
        largest[worker] = std::max(largest[worker], most);
    });
    const auto most = static_cast<double>(*std::max_element(largest.begin(), largest.end()));
    code.row_residual = std::min(code.row_residual, code.residual_above(most));
    return made;
}

template <typename T>
bool encode_centroids(const Int16Kernels &kernels, const Int16Code<T> &code, const T *const *centroids, int count,
                      Int16Room &room, Int16Centroid *about)
{
    const float residual =
        kernels.encode(centroids, count, code.d, code.middle, 1.0 / code.unit, room.block.data(), room.words.data());
    const Int16Block block(room.words.data());
    bool all = true;
    for (int i = 0; i < count; ++i) {
        const double square = centred_square(centroids[i], code.middle, code.d, 1.0 / code.unit);
        const double length = std::sqrt(square) * (1.0 + 0x1p-30);
        const double lost = code.residual_above(static_cast<double>(residual)) * static_cast<double>(block.unit[i]);
        const double margin = 1.001 * (most_int16_length * lost + code.row_residual * length +
                                       8.0 * unit * most_int16_length * (length + lost)) +
                              0x1p-60;
        const bool holds = length < longest_centroid && block.unit[i] != 0.0f;
        about[i] = {static_cast<float>(square / 2.0 * (1.0 - 16.0 * unit)), holds ? block.unit[i] : 0.0f,
                    static_cast<float>(margin)};
        all = all && holds;
    }
    return all;
}

Int16Store::Int16Store(Budget &budget, std::int64_t most, std::int32_t d)
    : pairs_((d + 1) / 2), values_(budget, most * pairs_), start_(budget, most), scale_(budget, most),
      margin_(budget, most)
{
}

void Int16Store::put(std::int64_t j, const Int16Room &room, int i, const Int16Centroid &about)
{
    for (std::int64_t p = 0; p < pairs_; ++p)
        values_[panel_place(j, p, pairs_)] = room.words[(int16_head + p) * tiled_width + i];
    start_[j] = about.start;
    scale_[j] = about.scale;
    margin_[j] = about.margin;
}

void Int16Store::put_none(std::int64_t j)
{
    for (std::int64_t p = 0; p < pairs_; ++p)
        values_[panel_place(j, p, pairs_)] = 0;
    start_[j] = 0x1p100f;
    scale_[j] = margin_[j] = 0.0f;
}

template <typename T>
std::unique_ptr<Filter<T>> int16_filter(const Rows<T> &rows, std::shared_ptr<const Int16Rows<T>> integers)
{
    return std::make_unique<Int16Filter<T>>(rows, std::move(integers));
}

template struct Int16Code<float>;
template struct Int16Code<double>;
template class Int16Rows<float>;
template class Int16Rows<double>;
template bool encode_centroids(const Int16Kernels &, const Int16Code<float> &, const float *const *, int, Int16Room &,
                               Int16Centroid *);
template bool encode_centroids(const Int16Kernels &, const Int16Code<double> &, const double *const *, int, Int16Room &,
                               Int16Centroid *);
template std::unique_ptr<Filter<float>> int16_filter(const Rows<float> &, std::shared_ptr<const Int16Rows<float>>);
template std::unique_ptr<Filter<double>> int16_filter(const Rows<double> &, std::shared_ptr<const Int16Rows<double>>);

} // namespace pgkm::cpu
