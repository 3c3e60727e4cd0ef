// signals.hpp - threads that no signal handler of the server can run in.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "engine/platform.hpp"

namespace pgkm {

// Blocks every signal while it lives, so that a thread started meanwhile inherits the mask:
// the server's signal handlers must run in the server's own thread.
class SignalGuard {
  public:
    SignalGuard()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &saved_);
    }
    ~SignalGuard() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
    SignalGuard(const SignalGuard &) = delete;
    SignalGuard &operator=(const SignalGuard &) = delete;

  private:
    sigset_t saved_;
};

} // namespace pgkm
