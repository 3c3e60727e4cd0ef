// stream.cpp - handing chunks over between two threads.
#include "engine/nodes/stream.hpp"

#include <chrono>
#include <new>

#include "backend/host.hpp"

bool PgkmStream::take(const PgkmHost &host, PgkmPoints &chunk)
{
    constexpr std::chrono::milliseconds slice(5); // until the cancel flag is looked at
    std::unique_lock<std::mutex> lock(mutex_);
    while (!changed_.wait_for(lock, slice, [this] { return full_; }))
        pgkm::poll(host);
    chunk = chunk_;
    full_ = false;
    at_begin_ = chunk.n == 0;
    changed_.notify_all();
    return chunk.n > 0;
}

void PgkmStream::begin_pass(const PgkmHost &host)
{
    PgkmPoints left;
    if (!at_begin_)
        while (take(host, left)) {}
}

PgkmStream *pgkm_stream_create(int64_t n, int64_t most)
{
    return new (std::nothrow) PgkmStream(n, most);
}

void pgkm_stream_free(PgkmStream *stream)
{
    delete stream;
}

int pgkm_stream_wait(PgkmStream *stream, int milliseconds)
{
    std::unique_lock<std::mutex> lock(stream->mutex_);
    const auto wanted = [stream] { return !stream->full_; };
    return stream->changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), wanted) ? 1 : 0;
}

void pgkm_stream_give(PgkmStream *stream, const PgkmPoints *chunk)
{
    const std::lock_guard<std::mutex> lock(stream->mutex_);
    stream->chunk_ = *chunk;
    stream->full_ = true;
    stream->changed_.notify_all();
}
