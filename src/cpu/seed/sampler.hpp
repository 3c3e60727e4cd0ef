// sampler.hpp - D^2 sampling over the rows of one problem, block by block.
//
// Per row it keeps the squared distance to the nearest chosen row and which that is, per
// block one 64-bit sum of sampling integers. A draw walks the block sums first and then the
// rows of a single block, so that no prefix sum over the rows is ever stored.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/seed/seed_kernels.hpp"
#include "cpu/seed/runner.hpp"
#include "cpu/seed/safety.hpp"
#include "numeric/philox.hpp"

namespace pgkm::cpu {

// The random numbers of a sampler: rows and k-means|| candidates must not share them.
struct SeedStreams {
    Stream first;
    Stream trial;
};

// Masses by which the first row is drawn: given ones, or the rows' weights quantised.
struct FirstMasses {
    const std::int64_t *given; // n, or NULL
    double weight_scale;       // of quantise(); unused without weights
};

template <typename T>
class SeedSampler {
  public:
    SeedSampler(const BlockRunner &runner, const SeedRows<T> &rows, const FirstMasses &masses,
                const PgkmSeedParams &params, SeedStreams streams);

    // Draws the first row by mass and chooses it.
    void choose_first();

    // Greedy k-means++ until k rows are chosen or none lies apart.
    void extend(std::int32_t k);

    // One round of k-means||; false when no row lies apart.
    bool oversample(std::uint32_t round, std::int32_t k);

    const std::vector<std::int64_t> &chosen() const { return chosen_; }
    // Per row the index into chosen() of the nearest.
    const Buffer<std::int32_t> &labels() const { return labels_; }

  private:
    std::int64_t first_row(std::int64_t block) const { return block * block_rows_; }
    SeedBlock<T> block_of(std::int64_t block, const double *safe);
    std::uint64_t draw_bits(Stream stream, std::uint32_t round, std::uint64_t index) const;
    std::int64_t first_mass(std::int64_t row) const;
    std::int64_t mass(std::int64_t row) const; // the sampling integer
    UInt128 total() const;                     // of block_sums_

    void choose(const std::vector<std::int64_t> &rows);
    void choose_batch(const std::int64_t *rows, std::int32_t count);
    bool weigh();
    Buffer<double> gather(const std::int64_t *rows, std::size_t count) const;
    void choose_trial(const std::vector<std::int64_t> &trials);
    // The first row whose running sum passes the draw; term(row) are what block_sums_ sums.
    template <typename Term>
    std::int64_t pick(std::uint64_t bits, Term &&term) const;

    const BlockRunner &runner_;
    const SeedKernels &kernels_;
    SeedRows<T> rows_;
    FirstMasses masses_;
    PgkmSeedParams params_;
    SeedStreams streams_;
    std::int64_t block_rows_;
    std::int64_t blocks_;
    Buffer<double> nearest_;
    Buffer<std::int32_t> labels_;
    Buffer<std::uint64_t> block_sums_; // of the sampling integers
    Buffer<double> block_largest_;
    std::vector<std::int64_t> chosen_;
    SeedSafety<T> safety_;
    double scale_ = 0.0; // of the sampling integers; 0: block_sums_ is stale
};

} // namespace pgkm::cpu
