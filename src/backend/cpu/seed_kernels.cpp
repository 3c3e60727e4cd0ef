#include "backend/cpu/seed_kernels.hpp"

#include <algorithm>

#include "engine/contract.hpp"

namespace pgkm::cpu {

template <typename T>
double lower_nearest(const SeedRows<T> &block, const SeedCandidates &candidates, double *nearest,
                     std::int32_t *labels)
{
    double largest = 0.0;
    for (std::int64_t i = 0; i < block.n; ++i) {
        for (std::int32_t c = 0; c < candidates.count; ++c) {
            const double distance =
                exact_distance(block.row(i), candidates.values + std::int64_t{c} * block.d, block.d);
            if (distance < nearest[i]) {
                nearest[i] = distance;
                if (labels != nullptr)
                    labels[i] = candidates.first_index + c;
            }
        }
        largest = std::max(largest, block.weight(i) * nearest[i]);
    }
    return largest;
}

template <typename T>
std::uint64_t sum_masses(const SeedRows<T> &block, const double *nearest, double scale)
{
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < block.n; ++i)
        sum += static_cast<std::uint64_t>(quantise_mass(block.weight(i) * nearest[i], scale));
    return sum;
}

template <typename T>
void sum_trials(const SeedRows<T> &block, const SeedCandidates &candidates, const double *nearest, double scale,
                std::uint64_t *sums)
{
    std::fill(sums, sums + candidates.count, 0);
    for (std::int64_t i = 0; i < block.n; ++i)
        for (std::int32_t c = 0; c < candidates.count; ++c) {
            const double distance = std::min(
                nearest[i], exact_distance(block.row(i), candidates.values + std::int64_t{c} * block.d, block.d));
            sums[c] += static_cast<std::uint64_t>(quantise_mass(block.weight(i) * distance, scale));
        }
}

template double lower_nearest<float>(const SeedRows<float> &, const SeedCandidates &, double *, std::int32_t *);
template double lower_nearest<double>(const SeedRows<double> &, const SeedCandidates &, double *, std::int32_t *);
template std::uint64_t sum_masses<float>(const SeedRows<float> &, const double *, double);
template std::uint64_t sum_masses<double>(const SeedRows<double> &, const double *, double);
template void sum_trials<float>(const SeedRows<float> &, const SeedCandidates &, const double *, double,
                                std::uint64_t *);
template void sum_trials<double>(const SeedRows<double> &, const SeedCandidates &, const double *, double,
                                 std::uint64_t *);

} // namespace pgkm::cpu
