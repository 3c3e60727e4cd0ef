// devices.cpp - how many devices a fit of k-means is worth, and how they share its restarts: pure functions, tested
// without one.
//
// An estimate that is off by two still tells shapes apart that gain from those that do not. Figures are of an H200:
// measured ones are fits of 20 iterations in docs/benchmarks.md, the others say what they are guessed from.
#include <algorithm>
#include <cmath>

#include "engine/backends/work.hpp"

namespace pgkm {
namespace {

// Of one device, a second. Measured: bytes 2.6e12 (134,217,728 x 4, k = 4); multiply-adds 0.9e14 (1,000,000 x 128,
// k = 1,024) to 2.0e14 (1,000,000 x 768), both of uniform rows; pairs 1e12 (4,000,000 x 8, k = 100) to 2e13
// (1,000,000 x 3, k = 10,000).
constexpr double read_bytes = 3e12;    // of rows, once in an iteration
constexpr double multiply_adds = 1e14; // a feature of a row and a cluster
constexpr double pairs = 1e13;         // a row and a cluster, whatever the features

// Seconds of an iteration that rows do not shorten: launches. Measured: 1.5e-5 (65,536 x 32, k = 16).
constexpr double fixed_seconds = 2e-5;

// Rows from the host to one device, bytes a second. Page-locked ones reach 5.4e10; a session's are not.
constexpr double upload_bytes = 2e10;

// What peers add to an iteration: seconds for two kernels and a meeting of their threads, and bytes of sums a second,
// of each peer. Measured on two H100: 2.7e-5 (134,217,728 x 4, k = 4) to 5.2e-5 (8,388,608 x 64, k = 64), and 1.0e-4
// and 2.1e-4 where sums are 2.1 and 8.4 MB (k = 1,024 and 4,096, 128 features).
constexpr double exchange_seconds = 3e-5;
constexpr double exchange_bytes = 1e11;
constexpr double sum_bytes = 16.0; // of a feature of a cluster: two 64-bit limbs

// A step of k-means++ beside its read of the rows in fp16, on one device and with peers; and what peers bring to one
// another before, a row. Measured on two H100: 6e-5 and 9e-5 (1,000,000 x 128), 1.2e-4 and 1.5e-4 (1,000,000 x 768); 50
// ms for 134,217,728 rows.
constexpr double step_seconds = 9e-5, peer_step_seconds = 1.2e-4, peer_row_seconds = 4e-10;

constexpr double context_seconds = 5e-3; // to open one more context and its memory: a guess
constexpr double gain = 0.9;             // a rule: more devices have to save a tenth at least

double bytes_of(const Extent &fit)
{
    return fit.n * fit.d * fit.value_bytes;
}

// Of all rows.
double iteration(const Extent &fit)
{
    const double distances = fit.n * fit.k;
    return std::max({bytes_of(fit) / read_bytes, distances * fit.d / multiply_adds, distances / pairs});
}

double step(const Extent &fit)
{
    return fit.n * fit.d * 2.0 / read_bytes;
}

// All iterations and steps, on several devices that share the rows.
double seconds_together(const Extent &fit, double devices)
{
    const double exchange = exchange_seconds + devices * fit.k * fit.d * sum_bytes / exchange_bytes;
    return fit.iterations * (iteration(fit) / devices + fixed_seconds + exchange) +
           fit.steps * (step(fit) / devices + peer_step_seconds) + fit.restarts * fit.n * peer_row_seconds;
}

// Where each has all rows. The device that takes most restarts ends last.
double seconds_apart(const Extent &fit, double devices)
{
    return std::ceil(fit.restarts / devices) / fit.restarts *
           (fit.iterations * (iteration(fit) + fixed_seconds) + fit.steps * (step(fit) + step_seconds));
}

double seconds_with(const Extent &fit, double devices)
{
    const double load = bytes_of(fit) / upload_bytes; // also where each has a share: the host's memory is the limit
    if (devices == 1.0)
        return load + seconds_apart(fit, 1.0);
    const double apart = load / devices + seconds_apart(fit, devices); // all rows once more, beside the shares
    return load + devices * context_seconds + std::min(seconds_together(fit, devices), apart);
}

} // namespace

bool restarts_pay_apart(const Extent &fit, std::int32_t devices)
{
    return devices > 1 && fit.restarts > 1.0 && seconds_apart(fit, devices) < seconds_together(fit, devices);
}

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
