// safety.cpp - a quarter of the squared distance from each chosen row to the nearest candidate.
#include "cpu/seed/safety.hpp"

#include <algorithm>
#include <limits>

namespace pgkm::cpu {
namespace {

// Distances among chosen rows must cost little beside the distances that they may save.
constexpr std::int64_t rows_per_chosen = 32;

// Below this a squared distance may have lost bits to underflow, and no bound is drawn from it.
constexpr double smallest_trusted = 0x1p-900;

} // namespace

template <typename T>
SeedSafety<T>::SeedSafety(const BlockRunner &runner, std::int64_t n, std::int32_t d)
    : runner_(runner), kernels_(seed_kernels(runner.instruction_set())), n_(n), d_(d)
{
}

template <typename T>
void SeedSafety<T>::add(const T *row)
{
    if (++count_ * rows_per_chosen > n_)
        return; // never asked for again
    const auto room = static_cast<std::int64_t>(safe_.size());
    if (count_ > room) {
        const auto grown = static_cast<std::size_t>(std::max<std::int64_t>(16, 2 * room));
        Buffer<T> larger(runner_.budget(), grown * d_);
        std::copy(chosen_.begin(), chosen_.begin() + room * d_, larger.begin());
        chosen_ = std::move(larger);
        safe_ = Buffer<double>(runner_.budget(), grown);
    }
    std::copy(row, row + d_, chosen_.data() + (count_ - 1) * d_);
}

template <typename T>
const double *SeedSafety<T>::find(const SeedCandidates &candidates)
{
    if (count_ == 0 || count_ * rows_per_chosen > n_)
        return nullptr;
    // Computed squared distances are within (d + 3) * 2^-53 of the true ones, relatively: three
    // of them meet in the inequality.
    const double quarter = 0.25 * (1.0 - (8.0 * d_ + 64.0) * 0x1p-52);
    const std::int64_t block_rows = seed_block_rows(d_);
    runner_.run((count_ + block_rows - 1) / block_rows, [&](std::int64_t block) {
        const std::int64_t first = block * block_rows;
        const std::int64_t end = std::min(first + block_rows, count_);
        std::fill(safe_.data() + first, safe_.data() + end, std::numeric_limits<double>::infinity());
        kernels_.lower(
            SeedBlock<T>{chosen_.data() + first * d_, nullptr, end - first, d_, safe_.data() + first, nullptr, nullptr},
            candidates);
        for (std::int64_t j = first; j < end; ++j) {
            const double distance = safe_[j];
            safe_[j] = distance < smallest_trusted ? 0.0 : distance * quarter;
        }
    });
    return safe_.data();
}

template class SeedSafety<float>;
template class SeedSafety<double>;

} // namespace pgkm::cpu
