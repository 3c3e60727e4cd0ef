// distance_filter.cpp - scores that are squares of distances, and what they say of D.
//
// Let s_j be the score of centroid j. SquareBounds says what D_j is at most and at least: s_j (1 + e) + t and
// s_j (1 - e) - t. A float64 square that is rounded to float32 is off by less than one of float32 arithmetic, and the
// bounds are those of the latter for both. The nearest centroid by D has a D of at most U = s (1 + e) + t, with s the
// lowest score; so its score is at most (U + t) / (1 - e).
#include "cpu/encode/distance_filter.hpp"

#include <algorithm>

#include "cpu/kernels/exact_kernels.hpp"

namespace pgkm::cpu {
namespace {

template <typename T>
class DistanceFilter final : public Filter<T> {
  public:
    explicit DistanceFilter(const Rows<T> &rows)
        : rows_(rows), kernels_(exact_kernels(rows.context.instruction_set)),
          score_kernels_(score_kernels(rows.context.instruction_set)), bounds_(rows.d),
          range_(panels_for(rows.k) * tiled_panel), centroids_(rows.k)
    {
    }

    bool set(const DifferentCentroids<T> &centroids) override
    {
        count_ = static_cast<int>(centroids.count());
        for (int j = 0; j < count_; ++j)
            centroids_[j] = centroids[j];
        return true;
    }

    std::int64_t range() const override { return range_; }
    const char *name() const override { return "distance"; }
    bool is_quick() const override { return true; }
    bool is_dearer_than_a_distance() const override { return false; }

    void prepare(FilterBlock &block) const override
    {
        block.scores = Buffer<float>(rows_.context.budget, range_ * tiled_width, largest_float);
        block.hits = Buffer<Hit>(rows_.context.budget, range_ * tiled_width);
    }

    void load(FilterBlock &block, const std::int64_t *, const T *const *points) const override
    {
        block.points = points;
        std::fill_n(block.found, block.count, 0);
    }

    void score(FilterBlock &block, std::int64_t first, std::int64_t) const override
    {
        const auto *points = static_cast<const T *const *>(block.points);
        const std::int64_t work = std::int64_t{rows_.d} * count_;
        const int per_poll = static_cast<int>(std::clamp<std::int64_t>(work_per_poll / work / 4 * 4, 4, tiled_width));
        for (int i = 0; i < block.count; i += per_poll) {
            rows_.context.poll();
            kernels_.estimates_of_rows(points + i, std::min(per_poll, block.count - i), centroids_.data(), count_,
                                       rows_.d, tiled_width, block.scores.data() + i);
        }
        score_kernels_.lowest(block.scores.data(), count_, block.lowest(first));
        for (int i = 0; i < block.count; ++i) {
            const auto lowest = static_cast<double>(block.best[i]);
            if (lowest < most_square)
                block.limit[i] = std::min(block.limit[i], float_above(score_above(block, i, bounds_.above(lowest))));
            else
                block.found[i] = -1;
        }
    }

    std::int64_t pick(FilterBlock &block, std::int64_t size, const float *search) const override
    {
        return score_kernels_.at_most(block.scores.data(), size, search, block.hits.data());
    }

    double score_above(const FilterBlock &, int, double square) const override { return bounds_.score_above(square); }

    void squares(const FilterBlock &block, const float *others, double *most, double *least) const override
    {
        for (int i = 0; i < tiled_width; ++i) {
            most[i] = bounds_.above(static_cast<double>(std::min(block.best[i], block.limit[i])));
            least[i] = bounds_.below(static_cast<double>(others[i]));
        }
    }

  private:
    static constexpr double most_square = 0x1p120; // where float32 is far from its end

    Rows<T> rows_;
    const ExactKernels &kernels_;
    const ScoreKernels &score_kernels_;
    const SquareBounds<float> bounds_;
    std::int64_t range_;
    std::vector<const T *> centroids_;
    int count_ = 0; // of them
};

} // namespace

template <typename T>
std::unique_ptr<Filter<T>> distance_filter(const Rows<T> &rows)
{
    return std::make_unique<DistanceFilter<T>>(rows);
}

template std::unique_ptr<Filter<float>> distance_filter(const Rows<float> &);
template std::unique_ptr<Filter<double>> distance_filter(const Rows<double> &);

} // namespace pgkm::cpu
