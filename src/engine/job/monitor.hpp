// monitor.hpp - what a job tells while it runs, how long its phases took, and its cancel flag.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Written by the job's thread, read from any.
class Monitor {
  public:
    virtual ~Monitor() = default;

    // What a backend is lent: progress goes here, and the cancel flag is this one's.
    PgkmHost host();

    void begin_backend(const char *name);     // a static string; forgets what a failed one told
    void begin_restart(std::int32_t restart); // and its seeding
    void enter(PgkmPhase phase);
    // Iterations that the engine counts, within PGKM_ITERATING or PGKM_REFINING: no backend's count is shown then.
    void count_iteration(std::int32_t iteration, double shift);
    void end(); // closes the last phase

    void cancel() { cancelled_.store(1); }
    // Asked every few milliseconds, from any of the job's threads. A test may watch how often.
    virtual bool cancelled() const { return cancelled_.load(std::memory_order_relaxed) != 0; }
    // Throws Error(PGKM_CANCELLED).
    void poll() const;
    PgkmJobProgress progress() const;

    // What a backend tells: the progress of its host.
    void note(const PgkmProgress &told);

  private:
    void close_phase();

    std::atomic<int> cancelled_{0};
    mutable std::mutex mutex_; // guards what follows
    PgkmJobProgress progress_ = {};
    bool counted_ = false; // by count_iteration(), in this phase
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

} // namespace pgkm
