// rows.hpp - the rows of a line and its first centroids, in memory that other processes can map.
//
// Kinds (a row depends on its number and the seed, and on nothing else):
//   blobs       10 centres uniform in [-100, 100]^d, normal spread of 10 / sqrt(d) (Lutz et al. 2018)
//   uniform     the unit cube
//   overlap     100 Gaussians with centres N(0, 1)^d and spread 1
//   lognormal   exp of N(0, 1.5)
//   directions  unit vectors near a space of ten dimensions, as embeddings are
//   levels      columns of 0 and 1: attributes of five levels, drawn by one of 30 classes
//   towns       near one of 200 places of [-1, 1]^d, in steps of 0.01: with few features many rows are the same
#pragma once

#include <cstdint>
#include <string>

#include "lines.hpp"

namespace bench {

bool is_kind(const std::string &kind);

struct FileShape {
    std::int64_t n;
    std::int32_t d;
    std::int64_t offset; // of the first value
};
// Of a .npy file with float32 rows; throws where it holds anything else.
FileShape npy_shape(const std::string &path);

// float32 rows (n x d), followed by the centroids (k x d), of one line at a time.
class Rows {
  public:
    Rows();
    ~Rows();
    Rows(const Rows &) = delete;
    Rows &operator=(const Rows &) = delete;

    // Draws or reads a line's rows, and chooses k different ones as first centroids.
    void fill(const Line &line, std::uint64_t seed);
    void clear();

    int file() const { return file_; } // what child processes inherit
    const float *values() const { return values_; }
    const float *centroids() const { return centroids_; }

  private:
    void choose_centroids(const Line &line, std::uint64_t seed);

    int file_;
    float *values_ = nullptr, *centroids_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace bench
