// seed_sampler.hpp - D^2 sampling over the rows of one problem, block by block.
//
// Per row it keeps one float64 (the squared distance to the nearest chosen row), per block
// one 64-bit sum of sampling integers. A draw walks the block sums first and then the rows
// of a single block, so that no prefix sum over the rows is ever stored.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/context.hpp"
#include "backend/cpu/seed_kernels.hpp"
#include "engine/philox.hpp"

namespace pgkm::cpu {

// Runs independent blocks: on the context's threads, or, when whole problems are already
// spread over them, one after another on the thread at hand.
class BlockRunner {
  public:
    BlockRunner(Context &context, bool threaded) : context_(context), threaded_(threaded) {}

    Budget &budget() const { return context_.budget; }
    void    poll() const { context_.poll(); }
    // `chosen` rows of a problem that has the threads to itself; others stay silent.
    void report(std::size_t chosen) const
    {
        if (threaded_)
            context_.report("seeding", 0, static_cast<std::int32_t>(chosen), 0.0);
    }

    template <typename Body> // body(block)
    void run(std::int64_t blocks, Body &&body) const
    {
        if (threaded_ && blocks > 1) {
            context_.pool.run(blocks, [&](std::int64_t block, int) {
                context_.poll();
                body(block);
            });
            return;
        }
        for (std::int64_t block = 0; block < blocks; ++block) {
            context_.poll();
            body(block);
        }
    }

  private:
    Context &context_;
    bool     threaded_;
};

// Accounts memory that standard containers take.
class Reservation {
  public:
    Reservation(Budget &budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) { budget.take(bytes); }
    ~Reservation() { budget_.give_back(bytes_); }
    Reservation(const Reservation &) = delete;
    Reservation &operator=(const Reservation &) = delete;

  private:
    Budget       &budget_;
    std::uint64_t bytes_;
};

// The random numbers of a sampler: rows and k-means|| candidates must not share them.
struct SeedStreams {
    Stream first;
    Stream trial;
};

// Masses by which the first row is drawn: given ones, or the rows' weights quantised.
struct FirstMasses {
    const std::int64_t *given;        // n, or NULL
    double              weight_scale; // of quantise(); unused without weights
};

template <typename T>
class SeedSampler {
  public:
    SeedSampler(const BlockRunner &runner, const SeedRows<T> &rows, const FirstMasses &masses,
                const PgkmSeedParams &params, SeedStreams streams, bool keep_labels);

    // Draws the first row by mass and chooses it.
    void choose_first();

    // Greedy k-means++ until k rows are chosen or none lies apart.
    void extend(std::int32_t k);

    // One round of k-means||; false when no row lies apart.
    bool oversample(std::uint32_t round, std::int32_t k);

    const std::vector<std::int64_t> &chosen() const { return chosen_; }
    // Per row the index into chosen() of the nearest; empty unless kept.
    const Buffer<std::int32_t> &labels() const { return labels_; }

  private:
    std::int64_t first_row(std::int64_t block) const { return block * block_rows_; }
    SeedRows<T>  block_of(std::int64_t block) const;
    std::uint64_t draw_bits(Stream stream, std::uint32_t round, std::uint64_t index) const;

    void choose(const std::vector<std::int64_t> &rows);
    UInt128 total() const;
    bool weigh();
    std::int64_t first_mass(std::int64_t row) const;
    Buffer<double> gather(const std::vector<std::int64_t> &rows) const;
    std::size_t best_trial(const std::vector<std::int64_t> &trials);
    // The first row whose running sum passes the draw; mass(row) are the terms of block_sums_.
    template <typename Mass>
    std::int64_t pick(std::uint64_t bits, Mass &&mass) const;

    const BlockRunner         &runner_;
    SeedRows<T>                rows_;
    FirstMasses                masses_;
    PgkmSeedParams             params_;
    SeedStreams                streams_;
    std::int64_t               block_rows_;
    std::int64_t               blocks_;
    Buffer<double>             nearest_; // squared distance to the nearest chosen row
    Buffer<std::int32_t>       labels_;
    Buffer<std::uint64_t>      block_sums_; // of the sampling integers
    std::vector<std::int64_t>  chosen_;
    double                     largest_ = 0.0; // largest weight * nearest
    double                     scale_ = 1.0;
};

} // namespace pgkm::cpu
