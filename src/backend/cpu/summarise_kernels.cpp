#include "backend/cpu/summarise_kernels.hpp"

#include <algorithm>
#include <cmath>

namespace pgkm::cpu {

template <typename T>
void widen_ranges(const SummaryRows<T> &block, const Ranges &ranges)
{
    for (std::int64_t i = 0; i < block.n; ++i) {
        const double weight = block.weights == nullptr ? 1.0 : block.weights[i];
        for (std::int32_t f = 0; f < block.d; ++f) {
            const double value = static_cast<double>(block.values[i * block.d + f]);
            ranges.min[f] = std::min(ranges.min[f], value);
            ranges.max[f] = std::max(ranges.max[f], value);
            ranges.max_abs[f] = std::max(ranges.max_abs[f], std::fabs(weight * value));
        }
    }
}

template <typename T>
void add_moments(const SummaryRows<T> &block, const MomentScale *scales, const MomentSums &sums)
{
    for (std::int64_t i = 0; i < block.n; ++i)
        for (std::int32_t f = 0; f < block.d; ++f) {
            const double centred = static_cast<double>(block.values[i * block.d + f]) - scales[f].middle;
            const Limbs limbs = quantise_square(centred * centred, power_of_two(scales[f].square_exponent));
            sums.value[f] += quantise(centred, power_of_two(scales[f].value_exponent));
            sums.square_hi[f] += limbs.hi;
            sums.square_lo[f] += limbs.lo;
        }
}

template void widen_ranges<float>(const SummaryRows<float> &, const Ranges &);
template void widen_ranges<double>(const SummaryRows<double> &, const Ranges &);
template void add_moments<float>(const SummaryRows<float> &, const MomentScale *, const MomentSums &);
template void add_moments<double>(const SummaryRows<double> &, const MomentScale *, const MomentSums &);

} // namespace pgkm::cpu
