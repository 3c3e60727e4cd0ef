// monitor.cpp - how far a job is.
#include "engine/job/monitor.hpp"

#include <algorithm>

#include "numeric/error.hpp"

namespace pgkm {

PgkmHost Monitor::host()
{
    PgkmHost host = {};
    host.cancelled = [](void *self) { return static_cast<const Monitor *>(self)->cancelled() ? 1 : 0; };
    host.progress = [](void *self, const PgkmProgress *told) { static_cast<Monitor *>(self)->note(*told); };
    host.arg = this;
    return host;
}

void Monitor::begin_backend(const char *name)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    close_phase();
    progress_.phase = PGKM_STARTING;
    progress_.backend = name;
    progress_.chosen = {};
    progress_.bytes_moved = 0;
    progress_.devices = 0;
}

void Monitor::begin_restart(std::int32_t restart)
{
    enter(PGKM_SEEDING);
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_.restart = restart;
    progress_.seeded = 0;
    progress_.iteration = 0;
    progress_.shift = 0.0;
}

void Monitor::enter(PgkmPhase phase)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    close_phase();
    progress_.phase = phase;
    counted_ = false;
}

void Monitor::count_iteration(std::int32_t iteration, double shift)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_.iteration = iteration;
    progress_.shift = shift;
    counted_ = true;
}

void Monitor::end()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    close_phase();
}

void Monitor::poll() const
{
    if (cancelled())
        throw Error(PGKM_CANCELLED, "cancelled");
}

PgkmJobProgress Monitor::progress() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return progress_;
}

// The phase is the engine's to tell; a backend knows what happens within it.
void Monitor::note(const PgkmProgress &told)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (progress_.phase == PGKM_SEEDING)
        progress_.seeded = told.iteration;
    if (progress_.phase == PGKM_ITERATING) {
        progress_.chosen = told.chosen;
        if (!counted_) {
            progress_.iteration = told.iteration;
            progress_.shift = told.shift;
        }
    }
    progress_.devices = told.devices;
    progress_.bytes_moved = std::max(progress_.bytes_moved, told.bytes_moved);
}

void Monitor::close_phase()
{
    const auto now = std::chrono::steady_clock::now();
    progress_.seconds[progress_.phase] += std::chrono::duration<double>(now - since_).count();
    since_ = now;
}

} // namespace pgkm
