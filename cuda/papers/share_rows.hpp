// share_rows.hpp - rows that the CPU and the device take from both hands of one dispatcher (Lutz et al. 2018, section
// 5).
#pragma once

#include <functional>
#include <vector>

#include "backend/update.hpp"
#include "numeric/thread_pool.hpp"
#include "plugin/context.hpp"

namespace pgkm::cuda {

// Takes the next rows, up to so many, from a problem's; returns the first of them, counted from the problem's first, or
// at least n_rows: there are none left.
using NextRows = std::function<std::int64_t(std::int64_t)>;

// The CPU's threads and the sums of each, which stay from pass to pass.
class CpuShare {
  public:
    // Sums of k clusters of d features, for as many threads as the caller allows; one where memory is short.
    CpuShare(Context &context, std::int32_t k, std::int32_t d);

    // Calls device(next) in this thread, which hands rows to the device until there are none left. Meanwhile other
    // threads assign the other rows to k centroids, exactly, and sum them. Returns their sums, until the next call.
    template <typename T>
    const Sums &add_up(const PgkmPoints &points, const PgkmProblem &problem, const T *centroids,
                       const std::function<void(const NextRows &)> &device);

  private:
    Context &context_;
    const std::int64_t n_sums_; // of a thread
    Claim claim_;
    ThreadPool pool_;
    std::vector<Sums> sums_;
};

} // namespace pgkm::cuda
