// projection_filter.cpp - scores of projected rows and centroids in float32, and what they say of distances.
//
// Let s and s_j be the float32 projection of a row and of a centroid, e at least the sum of their errors, b the bound
// of a score (score_bound.hpp), and t_j the exact score of s and s_j, so that |s - s_j|^2 = |s|^2 + 2 t_j. A centroid
// at a distance of U or less has a projection at U + e or less: its float32 score is at most ((U + e)^2 - |s|^2) / 2 +
// b. Such a U follows from the lowest score t: with A = |s|^2 + 2 t + 2 b + 4 r q, where r and q are the last features
// of the two projections, U = A^1/2 + e, and the limit is t + 2 b + 2 r q + 2 e A^1/2 + 2 e^2: |s|^2 cancels. A limit L
// tells U again: (U + e)^2 = |s|^2 + 2 (L - b).
//
// D is float64, with a relative error of (d + 3) 2^-53: squares are taken larger by (d + 4) 2^-51 of A, so that the
// centroid with the lowest D is within the limit. Bounds that are not finite leave a row open.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/encode/projection.hpp"
#include "cpu/encode/score_bound.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t most_at_once = 512; // centroids, whose scores are looked through for each row

template <typename T>
class ProjectionFilter final : public Filter<T> {
  public:
    ProjectionFilter(const Rows<T> &rows, std::shared_ptr<const Projection<T>> projection)
        : rows_(rows), projection_(std::move(projection)), kernels_(score_kernels(rows.context.instruction_set)),
          features_(projection_->features())
    {
        const std::int64_t all = panels_for(rows.k) * tiled_panel;
        range_ = std::min(range_for(features_, most_at_once), all);
        panels_ = Buffer<float>(rows.context.budget, all * features_);
        start_ = Buffer<float>(rows.context.budget, all);
        rest_ = Buffer<float>(rows.context.budget, all, 0.0f);
        for (int worker = 0; worker < rows.pool.size(); ++worker) {
            packed_.emplace_back(rows.context.budget, Projection<T>::padded(rows.d) * tiled_width);
            image_.emplace_back(rows.context.budget, std::int64_t{features_} * tiled_width);
        }
    }

    bool set(const DifferentCentroids<T> &centroids) override
    {
        const std::int64_t count = centroids.count();
        std::vector<double> lengths((count + tiled_width - 1) / tiled_width);
        rows_.for_ranges(count, tiled_width, [&](std::int64_t first, std::int64_t, int worker) {
            lengths[first / tiled_width] = project(centroids, first, packed_[worker].data(), image_[worker].data());
        });
        const double longest = *std::max_element(lengths.begin(), lengths.end());
        error_ = projection_->error(longest);
        // Centroids that only fill the last panel score too high to be hit.
        std::fill(start_.begin() + count, start_.begin() + panels_for(count) * tiled_panel, largest_float);
        bound_ = ScoreBound(features_, longest, kernels_.fused);
        return true;
    }

    std::int64_t range() const override { return range_; }
    const char *name() const override { return "projection"; }
    bool is_quick() const override { return true; }

    void prepare(FilterBlock &block) const override
    {
        block.scores = Buffer<float>(rows_.context.budget, range_ * tiled_width);
        block.hits = Buffer<Hit>(rows_.context.budget, range_ * tiled_width);
        block.image = Buffer<float>(rows_.context.budget, std::int64_t{features_} * tiled_width);
    }

    void load(FilterBlock &block, const std::int64_t *rows, const T *const *) const override
    {
        const float *images[tiled_width] = {};
        for (int i = 0; i < block.count; ++i)
            images[i] = projection_->row(rows[i]);
        kernels_.pack(images, block.count, features_, static_cast<const float *>(nullptr), block.image.data());
        reach(block);
    }

    void score(FilterBlock &block, std::int64_t first, std::int64_t size) const override
    {
        float before[tiled_width];
        std::copy_n(block.best, tiled_width, before);
        const Lowest lowest = block.lowest(first);
        for (std::int64_t f = 0; f < features_; f += score_chain) {
            const std::int64_t part = std::min<std::int64_t>(score_chain, features_ - f);
            kernels_.add(block.image.data() + f * tiled_width, static_cast<int>(part),
                         panels_.data() + first * features_ + f * tiled_panel, std::int64_t{tiled_panel} * features_,
                         size / tiled_panel, f == 0 ? start_.data() + first : nullptr, block.scores.data(),
                         f + part == features_ ? &lowest : nullptr);
        }
        for (int i = 0; i < block.count; ++i)
            if (block.found[i] >= 0 && block.best[i] < before[i])
                block.limit[i] = std::min(block.limit[i], limit_of(block, i));
    }

    std::int64_t pick(FilterBlock &block, std::int64_t size, const float *search) const override
    {
        return kernels_.at_most(block.scores.data(), size, search, block.hits.data());
    }

    double score_above(const FilterBlock &block, int i, double square) const override
    {
        const double most = std::sqrt(square) * (1.0 + 0x1p-50) + block.error[i];
        const double norm = bound_.square_below(static_cast<double>(block.square[i]));
        return (most * most * (1.0 + 0x1p-49) - norm) / 2.0 + block.slack[i] + 0x1p-49 * norm;
    }

    void squares(const FilterBlock &block, const float *others, double *most, double *least) const override
    {
        for (int i = 0; i < block.count; ++i) {
            const double slack = block.slack[i], norm = block.norm[i], limit = static_cast<double>(block.limit[i]);
            const double above = norm * norm * (1.0 + 0x1p-48) + 2.0 * (limit - slack);
            const double to = std::sqrt(std::max(0.0, above)) * (1.0 + 0x1p-48) - block.error[i];
            const double below = bound_.square_below(static_cast<double>(block.square[i])) * (1.0 - 0x1p-50) +
                                 2.0 * (static_cast<double>(others[i]) - slack);
            const double from = std::sqrt(std::max(0.0, below)) - block.error[i] * (1.0 + 0x1p-40);
            most[i] = std::max(0.0, to) * std::max(0.0, to) * (1.0 + 0x1p-48);
            least[i] = std::max(0.0, from) * std::max(0.0, from);
        }
    }

  private:
    // How far scores and projections of the block may be off.
    void reach(FilterBlock &block) const
    {
        kernels_.norms(block.image.data(), features_, block.square);
        for (int i = 0; i < block.count; ++i) {
            block.norm[i] = bound_.length_above(static_cast<double>(block.square[i]));
            block.slack[i] = bound_.of(block.norm[i]);
            block.error[i] = projection_->error(block.norm[i]) + error_;
            block.found[i] = std::isfinite(block.slack[i] + block.error[i]) ? 0 : -1;
        }
    }

    // What the score of the nearest centroid is at most, by the lowest one.
    float limit_of(const FilterBlock &block, int i) const
    {
        const double score = block.best[i], b = block.slack[i], e = block.error[i];
        const double rests = static_cast<double>(block.image[(features_ - 1) * tiled_width + i]) *
                             static_cast<double>(rest_[static_cast<std::int64_t>(block.index[i])]) * (1.0 + 0x1p-50);
        const double square = std::max(0.0, block.norm[i] * block.norm[i] + 2.0 * (score + b) + 4.0 * rests);
        const double root = std::sqrt(square) * (1.0 + 0x1p-50);
        return float_above(score + 2.0 * b + 2.0 * rests + 2.0 * e * (root + e) + (rows_.d + 4.0) * 0x1p-51 * square);
    }

    // Projects tiled_width centroids from `first` on, as panels. Returns the length of the longest, rounded up.
    double project(const DifferentCentroids<T> &centroids, std::int64_t first, float *packed, float *image)
    {
        const T *points[tiled_width] = {};
        const std::int64_t count = std::min<std::int64_t>(tiled_width, centroids.count() - first);
        for (std::int64_t i = 0; i < count; ++i)
            points[i] = centroids[first + i];
        kernels_.pack(points, static_cast<int>(count), rows_.d, projection_->middle(), packed);
        projection_->project(packed, image);
        double longest = 0.0;
        for (std::int64_t i = 0; i < panels_for(count) * tiled_panel; ++i) {
            const std::int64_t j = first + i;
            double square = 0.0;
            for (int f = 0; f < features_; ++f) {
                const float value = image[f * tiled_width + i];
                square += static_cast<double>(value) * static_cast<double>(value);
                panels_[panel_place(j, f, features_)] = i < count ? -value : 0.0f;
            }
            start_[j] = static_cast<float>(square / 2.0);
            rest_[j] = image[(features_ - 1) * tiled_width + i];
            const double length = std::sqrt(square) * (1.0 + static_cast<double>(features_ + 8) * 0x1p-52) + 0x1p-500;
            // Also where it is not a number.
            longest = length <= longest ? longest : length < largest_float ? length : HUGE_VAL;
        }
        return longest;
    }

    Rows<T> rows_;
    std::shared_ptr<const Projection<T>> projection_;
    const ScoreKernels &kernels_;
    int features_;
    std::int64_t range_;
    Buffer<float> panels_;                      // of the centroids
    Buffer<float> start_;                       // |c|^2 / 2 of each
    Buffer<float> rest_;                        // last feature of each
    std::vector<Buffer<float>> packed_, image_; // of each worker, for centroids
    ScoreBound bound_;
    double error_ = 0.0; // of the centroids' projections, at most
};

} // namespace

template <typename T>
std::unique_ptr<Filter<T>> projection_filter(const Rows<T> &rows, std::shared_ptr<const Projection<T>> projection)
{
    return std::make_unique<ProjectionFilter<T>>(rows, std::move(projection));
}

template std::unique_ptr<Filter<float>> projection_filter(const Rows<float> &,
                                                          std::shared_ptr<const Projection<float>>);
template std::unique_ptr<Filter<double>> projection_filter(const Rows<double> &,
                                                           std::shared_ptr<const Projection<double>>);

} // namespace pgkm::cpu
