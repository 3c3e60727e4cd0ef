// projection.hpp - rows of many features made short: a filter on what they become costs little.
//
// The projection of a point has few features: its coordinates along the directions in which the rows spread most, and
// last the norm of the residual. No two projections are farther apart than their points, since norms of two residuals
// differ by no more than the residuals do. So a projection that is too far away rules its centroid out. And with r and
// s the two norms, points are at most the root of 4 r s farther apart, in squares, than their projections.
#pragma once

#include <memory>

#include "cpu/encode/centre.hpp"
#include "cpu/encode/directions.hpp"
#include "cpu/encode/filter.hpp"
#include "cpu/kernels/exact_kernels.hpp"

namespace pgkm::cpu {

// What a projection is wanted for: so many assignments to centroids like these (k x d). What it leaves open of these,
// times `share`, is left open in each.
template <typename T>
struct ProjectionUse {
    const T *centroids;
    double passes, share;
};

// Directions that are worth looking for; 0 where none pays.
template <typename T>
std::int32_t most_directions(const Rows<T> &rows, double passes);

// The number of features that costs least, or 0 where a projection does not pay. One with so many as
// are `kept` need not be made; but for many passes it has to pay as if it were: rows of clusters that lie apart have
// something better then, short lists of centroids.
template <typename T>
int choose_features(const Rows<T> &rows, const T *middle, const Directions &directions, const ProjectionUse<T> &use,
                    int kept);

template <typename T>
class Projection {
  public:
    // Of the rows about the centre. NULL where float32 is too coarse for these directions.
    static std::shared_ptr<const Projection> make(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre,
                                                  const Directions &directions, int features);

    int features() const { return features_; }
    const float *row(std::int64_t i) const { return values_.data() + i * features_; }
    const T *middle() const { return centre_->middle.data(); }

    // The projection of the packed points (d x tiled_width, room for padded() features), which this destroys:
    // features x tiled_width.
    void project(float *block, float *image) const;
    static std::int64_t padded(std::int64_t d) { return (d + tiled_panel - 1) / tiled_panel * tiled_panel; }

    // How far the float32 projection of a point may lie from the exact one, in terms of its length.
    double error(double length) const { return relative_error_ * length + smallest_error_; }
    // The length of the longest one of a row, at most; infinity where float32 does not hold all.
    double longest() const { return longest_; }

  private:
    Projection(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre, const Directions &directions,
               std::int32_t count);
    void bound(double skew);
    void fill(const Rows<T> &rows);

    const Context &context_;
    std::int32_t d_;
    const ScoreKernels &kernels_;
    std::shared_ptr<const Centre<T>> centre_;
    std::int32_t count_; // of directions
    int features_;       // a multiple of 8, above count_
    double relative_error_ = 0.0, smallest_error_ = 0.0, longest_ = 0.0;
    Buffer<float> onto_; // panels of the directions, over d features
    Buffer<float> out_;  // panels of their negatives, features over directions
    Buffer<float> zeros_;
    Buffer<float> values_; // n x features
};

template <typename T>
std::unique_ptr<Filter<T>> projection_filter(const Rows<T> &rows, std::shared_ptr<const Projection<T>> projection);

} // namespace pgkm::cpu
