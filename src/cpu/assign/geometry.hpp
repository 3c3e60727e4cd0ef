// geometry.hpp - where the centroids are to each other, and how far they drifted: what the triangle
// inequality needs, rounded so that every conclusion drawn from it is safe.
#pragma once

#include <memory>
#include <vector>

#include "cpu/rows.hpp"
#include "cpu/kernels/bounds.hpp"
#include "cpu/kernels/list_kernels.hpp"
#include "cpu/assign/wide_centroids.hpp"

namespace pgkm::cpu {

template <typename T>
class Geometry {
  public:
    explicit Geometry(const Rows<T> &rows);

    // New centroids, k x d; `distances` says whether those between them are wanted this time.
    // Without them there is neither wide() nor distance(), and drift().half is 0.
    void set(const T *centroids, bool distances);

    // In float64; row k is at infinity, to fill up lists.
    const double *wide() const { return room_->wide.data(); }
    Drift drift() const { return {own_.data(), others_.data(), half_.data()}; }
    // Distances of centroid a to all, rounded down; to itself 0 or a little less.
    const float *distance(std::int32_t a) const { return room_->distance.data() + std::int64_t{a} * k_; }
    // `count` centroids (<= k) that lie apart: each is the farthest from those before it.
    std::vector<std::int32_t> spread(std::int32_t count) const;

  private:
    struct Room {
        explicit Room(const Rows<T> &rows);
        WideCentroids wide;
        Buffer<float> distance;                     // k x k
        Buffer<std::int32_t> all;                   // 0 .. k - 1
        std::int32_t at_once;                       // centroids between two looks at the cancel flag
        std::vector<Buffer<double>> block, squares; // of each worker
        std::vector<Buffer<float>> apart;
    };
    void follow(const T *centroids);
    void measure();

    Rows<T> rows_;
    const ExactKernels &kernels_;
    std::int32_t k_;
    bool first_ = true;
    Buffer<T> previous_; // k x d
    Buffer<float> own_, others_, half_;
    std::unique_ptr<Room> room_;
};

} // namespace pgkm::cpu
