// images.hpp - rows of many features made short: a filter on what they become costs little.
//
// The image of a point has few features: its coordinates along the directions in which the rows spread most, and last
// the length of what these leave of it. No two images are farther apart than their points, since lengths of two
// remainders differ by no more than the remainders do. So an image that is too far away rules its centroid out. And
// with r and s the two lengths, points are at most the root of 4 r s farther apart, in squares, than their images.
#pragma once

#include <memory>

#include "cpu/assign/directions.hpp"
#include "cpu/kernels/pair_kernels.hpp"

namespace pgkm::cpu {

template <typename T>
class Images {
  public:
    // Images of the rows less `shift` (d), if they pay for `passes` assignments to centroids like these (k x d), and
    // find room; else none. What images leave open of these centroids, times `share`, is left open in a pass.
    static std::unique_ptr<Images> make(const Rows<T> &rows, const T *shift, const T *centroids, double passes,
                                        double share);

    int features() const { return features_; }
    const float *row(std::int64_t i) const { return images_.data() + i * features_; }

    // The image of the packed points (d x tiled_width, room for padded() features), which this destroys:
    // features x tiled_width.
    void project(float *block, float *image) const;
    static std::int64_t padded(std::int64_t d) { return (d + tiled_panel - 1) / tiled_panel * tiled_panel; }

    // How far the float32 image of a point may lie from the exact one, in terms of the length of the image.
    double error(double length) const { return relative_error_ * length + smallest_error_; }
    // The length of the longest image of a row, at most; infinity where float32 does not hold all.
    double longest() const { return longest_; }

  private:
    Images(const Rows<T> &rows, const Directions &directions, std::int32_t count);
    void bound(double skew);
    void fill(const T *shift);

    Rows<T> rows_;
    const TiledKernels &kernels_;
    std::int32_t count_; // of directions
    int features_;       // a multiple of 8, above count_
    double relative_error_ = 0.0, smallest_error_ = 0.0, longest_ = 0.0;
    Buffer<float> onto_; // panels of the directions, over d features
    Buffer<float> out_;  // panels of their negatives, features over directions
    Buffer<float> zeros_;
    Buffer<float> images_; // n x features
};

} // namespace pgkm::cpu
