// work.hpp - how much work a request is: every estimate of it, and what is decided by them.
//
// The unit is an operation of one core: a multiply-add with what surrounds it in a plain loop, about
// a nanosecond. Kernels with vectors do several in that time.
#pragma once

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

inline constexpr double operations_per_second = 1e9;

struct Work {
    double shared; // over the rows, by fits of at most 30 iterations: what a device or more threads can take
    double most;   // all there is to do when no fit ends before max_iter
};

Work work_of(const PgkmFitRequest &request);
Work work_of(const PgkmMixtureRequest &request);
Work work_of(const PgkmPcaRequest &request);

// Shared work that one more CPU thread is worth starting for.
inline constexpr double thread_pays = 5e6;

// Shared work below which a CPU is done before a CUDA context stands (about 0.3 s), or, where the
// GPU service has one already, before the rows are on the device (some milliseconds).
inline constexpr double device_pays = 4e9;
inline constexpr double ready_device_pays = 2e8;

// Whether a job is so short (some 20 ms at most) that it may run in the caller's thread, where nothing
// interrupts it: starting another would cost more, and with many small groups that is most of the time.
inline bool is_brief(const Work &work)
{
    return work.most < 0.02 * operations_per_second;
}

} // namespace pgkm
