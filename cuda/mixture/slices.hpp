// slices.hpp (mixture) - how much a launch may do: kernels look at a cancel when they begin. A pure function of the
// device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pgkm::cuda::mixture {

// Multiplications that a slice may take: as many as take 8 ms at `rate` (float64_rate()), some 20 ms by what kernels
// reach of it. Devices differ by a factor of 32 in it. busy: the part of the device, of 1, that the slice's blocks
// fill.
constexpr double slice_products(double rate, double busy)
{
    return 8e-3 * rate * std::min(busy, 1.0);
}

// Rows whose multiplications, `products` each, come to as much: a multiple of `unit`, and that at least.
constexpr std::int64_t slice_rows(double slice, double products, std::int64_t unit)
{
    return std::max<std::int64_t>(static_cast<std::int64_t>(std::min(slice / products, 1e9)) / unit, 1) * unit;
}

} // namespace pgkm::cuda::mixture
