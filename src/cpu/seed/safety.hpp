// safety.hpp - which rows a new candidate cannot win, by the triangle inequality.
//
// Let row x be nearest to the chosen row z. A candidate c with |c - z| >= 2 |x - z| is no
// nearer to x than z is. So per z one number decides: a quarter of the squared distance to
// the nearest candidate. After some steps nearly every row is safe, and is not even loaded.
#pragma once

#include <cstdint>

#include "cpu/seed/seed_kernels.hpp"
#include "cpu/seed/runner.hpp"

namespace pgkm::cpu {

template <typename T>
class SeedSafety {
  public:
    // For rows of d features, n of them.
    SeedSafety(const BlockRunner &runner, std::int64_t n, std::int32_t d);

    // The next chosen row.
    void add(const T *row);

    // SeedBlock::safe for these candidates; NULL while it is not worth finding out. It lives
    // until the next call.
    const double *find(const SeedCandidates &candidates);

  private:
    const BlockRunner &runner_;
    const SeedKernels &kernels_;
    std::int64_t n_;
    std::int32_t d_;
    std::int64_t count_ = 0;
    Buffer<T> chosen_; // count_ x d, with room to grow
    Buffer<double> safe_;
};

} // namespace pgkm::cpu
