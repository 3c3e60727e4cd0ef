// signals.hpp - threads that no signal handler of the server can run in.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "numeric/platform.hpp"

namespace pgkm {

// Blocks every signal while it lives, so that a thread started meanwhile inherits the mask:
// the server's signal handlers must run in the server's own thread.
class SignalsBlocked {
  public:
    SignalsBlocked()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &saved_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;

  private:
    sigset_t saved_;
};

} // namespace pgkm
