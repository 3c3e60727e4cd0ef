// stream.hpp - chunks of rows on their way from the thread that reads them to the job that works on them.
//
// It holds one. While the job works on a chunk the next one is read.
#pragma once

#include <condition_variable>
#include <mutex>

#include "engine/stream.h"
#include "numeric/platform.hpp"

struct PgkmStream {
  public:
    PgkmStream(std::int64_t n, std::int64_t most) : n(n), most(most) {}

    const std::int64_t n;    // rows of a pass
    const std::int64_t most; // of a chunk

    // Goes to the beginning of a pass, past what an attempt that failed has left.
    void begin_pass(const PgkmHost &host);
    // The next chunk of the pass, which lasts until the next call; false at its end. Throws Error.
    bool take(const PgkmHost &host, PgkmPoints &chunk);

  private:
    friend int pgkm_stream_wait(PgkmStream *, int);
    friend void pgkm_stream_give(PgkmStream *, const PgkmPoints *);

    std::mutex mutex_; // guards what follows
    std::condition_variable changed_;
    bool full_ = false;
    PgkmPoints chunk_ = {};
    bool at_begin_ = true; // the next chunk is the first of a pass
};
