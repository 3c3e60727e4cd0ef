// runner.hpp - what the parts of seeding share: threads, cancellation, accounted memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/context.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {

// Trials of a step at most: greedy_trials() of the largest k is 23.
inline constexpr int max_seed_candidates = 32;
// Rows of a block at most: what is known of them stays in cache.
inline constexpr std::int64_t max_seed_block = 1 << 12;

// Runs independent blocks: on the context's threads, or, when whole problems are already
// spread over them, one after another on the thread at hand.
class BlockRunner {
  public:
    BlockRunner(Context &context, bool threaded) : context_(context), threaded_(threaded) {}

    Context &context() const { return context_; }
    Budget &budget() const { return context_.budget; }
    InstructionSet instruction_set() const { return context_.instruction_set; }
    void poll() const { context_.poll(); }
    // How many rows are chosen, for a problem that has the threads to itself; others are silent.
    void report(std::size_t chosen) const
    {
        if (threaded_)
            context_.report("seeding", 0, static_cast<std::int32_t>(chosen), 0.0);
    }

    bool is_threaded() const { return threaded_; }
    // Threads that run blocks.
    int workers() const { return threaded_ ? context_.pool.size() : 1; }

    template <typename Body> // body(block)
    void run(std::int64_t blocks, Body &&body) const
    {
        run_by_workers(blocks, [&](std::int64_t block, int) { body(block); });
    }
    template <typename Body> // body(block, worker)
    void run_by_workers(std::int64_t blocks, Body &&body) const
    {
        if (threaded_ && blocks > 1) {
            context_.pool.run(blocks, [&](std::int64_t block, int worker) {
                context_.poll();
                body(block, worker);
            });
            return;
        }
        for (std::int64_t block = 0; block < blocks; ++block) {
            context_.poll();
            body(block, 0);
        }
    }

  private:
    Context &context_;
    bool threaded_;
};

// Rows of one problem, or the candidates of k-means||.
template <typename T>
struct SeedRows {
    const T *values;       // n x d
    const double *weights; // n, or NULL: every row weighs 1
    std::int64_t n;
    std::int32_t d;
    const Data *data = nullptr;            // where they are loaded, if what is made of them may be kept there
    const std::uint16_t *counts = nullptr; // n, or NULL: how many equal rows each stands for (cpu/entries)

    const T *row(std::int64_t i) const { return values + i * d; }
    std::uint64_t copies(std::int64_t i) const { return counts == nullptr ? 1 : counts[i]; }
    double weight(std::int64_t i) const { return weights == nullptr ? 1.0 : weights[i]; }
    double weight_of_copies(std::int64_t i) const { return weight(i) * static_cast<double>(copies(i)); }
    // The integer by which a row so far from the chosen ones is drawn; with its copies.
    std::uint64_t mass_of_one(std::int64_t i, double square, double scale) const
    {
        return static_cast<std::uint64_t>(quantise_mass(weight(i) * square, scale));
    }
    std::uint64_t mass(std::int64_t i, double square, double scale) const
    {
        return copies(i) * mass_of_one(i, square, scale);
    }
};

// Rows per block: about a millisecond's work for a few candidates. Fewer than 64 only where so many would take
// too long between two looks at the cancel flag.
inline std::int64_t seed_block_rows(std::int32_t d)
{
    return std::clamp<std::int64_t>((1 << 17) / d, std::clamp((1 << 22) / d, 1, 64), max_seed_block);
}

} // namespace pgkm::cpu
