// host_calls.hpp - what connections ask of the one thread that may call the server: to map and unmap the server's
// shared memory segments.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

#include "numeric/platform.hpp"
#include "service/wire/channel.hpp"
#include "service/service.h"

namespace pgkm::service {

class HostCalls {
  public:
    explicit HostCalls(const PgkmServiceHost &host);

    // From any thread: waits until the server's thread has mapped the segment. Throws
    // Error(PGKM_UNAVAILABLE) when that failed, Error(PGKM_CANCELLED) when the service ends, as its other calls do.
    PgkmSegment attach(std::uint32_t handle);
    // From any thread; does not wait.
    void detach(const PgkmSegment &segment);

    // The server's thread: does what is asked for. After stop() what is asked fails at once.
    void serve();
    void stop();

    // Readable when serve() has something to do, or somebody called wake().
    int wakeup() const { return event_.get(); }
    void wake() const;

  private:
    struct Attach {
        std::uint32_t handle;
        bool done;
        bool mapped;
        PgkmSegment segment;
        char why[256];
    };

    const PgkmServiceHost host_;
    File event_;
    std::mutex mutex_; // guards what follows
    std::condition_variable served_;
    std::deque<Attach *> attaches_;
    std::deque<PgkmSegment> detaches_;
    bool stopped_ = false;
};

} // namespace pgkm::service
