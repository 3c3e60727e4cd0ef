// cpu_backend.hpp - the CPU as the engine sees it: a backend, vectorised, threaded, always there; what its calls cost
// in memory; and what the engine computes in its caller's thread.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/backend.h"
#include "numeric/platform.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {

const PgkmBackend *cpu_backend();

namespace cpu {

// The threads of a context of this backend, for work between its calls.
ThreadPool &pool_of(PgkmContext *context);

// So many bytes of a context's memory, which something else allocates, from here to its end. Throws Error(PGKM_LIMIT),
// as the limit of the job: beside a device it is the same memory that the CPU would take.
class HeldMemory {
  public:
    HeldMemory(PgkmContext *context, std::uint64_t bytes);
    ~HeldMemory();
    HeldMemory(const HeldMemory &) = delete;
    HeldMemory &operator=(const HeldMemory &) = delete;

  private:
    PgkmContext *context_;
    std::uint64_t bytes_;
};

// Bytes that the moments of n rows of d features take on so many threads: copies of the sums, and a block of
// rows for each thread. Labels of weighted rows are not among them.
double moments_bytes(std::int64_t n, std::int32_t d, int threads, bool weighted);

// Bytes that a reduction of n rows of d values takes on so many threads, its results aside.
double reduce_bytes(const PgkmReduction &program, std::int32_t d, std::int64_t n, int threads);

// What a reduction of no rows comes to.
void reduce_nothing(const PgkmOpen &open, const PgkmReduction &program, PgkmReduced &out);

// Sets the mean (d values) of n rows, n <= block_rows, and adds products of deviations from it to a lower triangle.
// Returns the sum of the weights, n without (NULL). Asks poll(), which may throw, every few milliseconds.
double add_block(const double *rows, const double *weights, std::int64_t n, std::int32_t d, double *mean, double *cross,
                 const std::function<void()> &poll);

// sum of x[i] y[i]; and y[i] += a x[i]
double dot(const double *x, const double *y, std::int64_t n);
void add(double *y, double a, const double *x, std::int64_t n);

} // namespace cpu
} // namespace pgkm
