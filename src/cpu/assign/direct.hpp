// direct.hpp - exact float64 distances to every centroid.
//
// Method: Lloyd's assignment with points transposed in cache and lanes over points (the CPU form of
// Aggarwal 2013, section 3, "point in registers"). When to use: few features or few centroids, and
// as the fallback of everything else.
#pragma once

#include <memory>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/assign/wide_centroids.hpp"
#include "cpu/kernels/exact_kernels.hpp"

namespace pgkm::cpu {

// The buffers of one worker.
struct DirectScratch {
    DirectScratch(Budget &budget, std::int32_t d, int width);
    Buffer<double> block; // d x width
    Buffer<double> best;  // width
    Buffer<double> label; // width
};

template <typename T>
class Direct final : public Assigner<T> {
  public:
    explicit Direct(const Rows<T> &rows);
    Assignment strategy() const override { return Assignment::direct; }
    int rows_at_once() const override { return cached_rows(rows_); }
    void begin(const T *centroids) override;
    void assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances) override;

    // begin() by the calling worker alone, while others work.
    void begin_alone(const T *centroids);

    // The same for any rows of the problem, by their addresses.
    void assign_rows(int worker, const T *const *rows, int count, std::int32_t *labels, double *distances);

  private:
    void assign_block(int worker, const T *const *rows, int count, std::int32_t *labels, double *distances);
    void assign_few(const T *const *rows, int count, std::int32_t *labels, double *distances);

    Rows<T> rows_;
    int width_;
    const ExactKernels &kernels_;
    const T *centroids_ = nullptr;
    WideCentroids wide_;
    std::vector<std::unique_ptr<DirectScratch>> scratch_; // made by the worker that needs it
};

} // namespace pgkm::cpu
