// devices.cpp - how many devices a fit of k-means is worth.
//
// What one device of 2023 does in a second, roughly: an estimate that is off by two still tells shapes apart that gain
// from those that do not.
#include <algorithm>

#include "engine/backends/work.hpp"

namespace pgkm {
namespace {

constexpr double read_bytes = 3e12;       // rows in an iteration
constexpr double multiply_adds = 1e14;    // distances
constexpr double pairs = 1e13;            // of a row and a cluster, whatever the features
constexpr double fixed_seconds = 2e-5;    // launches of an iteration
constexpr double upload_bytes = 2e10;     // rows from the host to one device
constexpr double exchange_seconds = 3e-5; // of an iteration, beside what follows
constexpr double exchange_bytes = 1e11;   // sums of one device: there, and added up by another
constexpr double sum_bytes = 16.0;        // of a value of a centroid
constexpr double context_seconds = 5e-3;  // one more context with its memory
constexpr double gain = 0.9;              // more devices have to save a tenth at least

double seconds_with(const Extent &fit, double devices)
{
    const double bytes = fit.n * fit.d * fit.value_bytes, distances = fit.n * fit.k;
    const double iteration = std::max({bytes / read_bytes, distances * fit.d / multiply_adds, distances / pairs});
    if (devices == 1.0)
        return bytes / upload_bytes + fit.iterations * (iteration + fixed_seconds);
    // Seeding brings all rows to one of them.
    const double load = (1.0 + 1.0 / devices) * bytes / upload_bytes + devices * context_seconds;
    const double exchange = exchange_seconds + devices * fit.k * fit.d * sum_bytes / exchange_bytes;
    return load + fit.iterations * (iteration / devices + fixed_seconds + exchange);
}

} // namespace

std::int32_t devices_worth(const Extent &fit, std::int32_t most)
{
    std::int32_t best = 1;
    double least = seconds_with(fit, 1.0) * gain;
    for (std::int32_t devices = 2; devices <= most; ++devices)
        if (const double seconds = seconds_with(fit, devices); seconds < least) {
            best = devices;
            least = seconds;
        }
    return best;
}

} // namespace pgkm
