// work.hpp - how much work a request is, and what is decided by it: the backend and its threads.
//
// Each algorithm makes its own estimate (kmeans/work.cpp, mixture/mixture.cpp, pca/pca.cpp).
#pragma once

#include <cstdint>

#include "numeric/platform.hpp"

namespace pgkm {

// Seconds that one core would need for so many multiply-adds with what surrounds them in a plain loop: about a
// nanosecond each. Kernels with vectors need a part of it.
constexpr double time_of(double operations)
{
    return operations * 1e-9;
}

struct Work {
    double shared = 0.0;      // over the rows, by fits of at most 30 iterations: what a device or more threads can take
    double most = 0.0;        // all there is to do when no fit ends before max_iter
    bool at_home = false;     // a device has to be asked for: backend = auto leaves it to the CPU
    std::int32_t devices = 1; // that it is worth, where no setting names them
};

// How many devices, up to `most`, a fit of k-means is worth: those with which all of it, from rows on the host to
// labels, is likely to take the least time.
struct Extent {
    double n, d, k;
    double iterations; // of all restarts
    double value_bytes;
    double restarts = 1.0; // of all k: those that can go on at once
    double steps = 0.0;    // of k-means++, of all restarts
};
std::int32_t devices_worth(const Extent &fit, std::int32_t most);
// Whether so many devices are likely to take less time when each does some of the restarts by itself than when all
// do each restart together.
bool restarts_pay_apart(const Extent &fit, std::int32_t devices);

// Opening a backend, memory, a model; an iteration or a restart without rows.
inline constexpr double fixed_operations = 5e4;
inline constexpr double step_operations = 1e3;

// Fits end after so many iterations, mostly.
inline constexpr double usual_iterations = 30.0;

// Shared work w takes w / t on t threads, and each thread costs so much of that by itself: to start it, to wait for it,
// memory of its own. The least of w / t + t c is at t = sqrt(w / c). Measured with 1 to 32 threads of one host: 2,000 x
// 64 rows in 50 clusters are fastest with 4 to 8 threads, 20,000 x 16 in 20 with 8, 8,000 x 300 in 100 with 16.
inline constexpr double thread_costs = 0.004;

// Shared work below which a CPU is done before a CUDA context stands (about 0.3 s), or, where the
// GPU service has one already, before the rows are on the device (some milliseconds).
inline constexpr double device_pays = 4.0;
inline constexpr double ready_device_pays = 0.2;

// Whether a job is so short that it may run in the caller's thread, where nothing interrupts it: starting
// another would cost more, and with many small groups that is most of the time.
inline bool is_brief(const Work &work)
{
    return work.most < 0.02;
}

} // namespace pgkm
