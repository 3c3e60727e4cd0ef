// direct.hpp - exact float64 distances to every centroid.
//
// Method: Lloyd's assignment with points transposed in cache and lanes over points (the CPU form of
// Aggarwal 2013, section 3, "point in registers"). When to use: few features or few centroids, and
// as the fallback of everything else.
#pragma once

#include <memory>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/kernels/direct_kernels.hpp"
#include "cpu/kernels/pair_kernels.hpp"

namespace pgkm::cpu {

// Centroids as float64 panels of direct_kernels.hpp; the last panel is filled up with infinity,
// whose distance is never strictly less than anything.
class Panels {
  public:
    Panels(Budget &budget, std::int32_t k, std::int32_t d);

    // centroids: k x d. On the pool of `rows`.
    template <typename T>
    void set(const T *centroids, const Rows<T> &rows);

    std::int64_t count() const { return count_; }
    const double *at(std::int64_t panel) const { return values_.data() + panel * panel_width * d_; }

  private:
    std::int32_t k_;
    std::int32_t d_;
    std::int64_t count_;
    Buffer<double> values_;
};

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
    const DirectKernels &kernels_;
    const PairKernels &pairs_;
    const T *centroids_ = nullptr;
    Panels panels_;
    std::vector<std::unique_ptr<DirectScratch>> scratch_; // made by the worker that needs it
};

} // namespace pgkm::cpu
