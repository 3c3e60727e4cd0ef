// host_calls.cpp - hands segments to map and unmap to the server's thread.
#include "service/server/host_calls.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "numeric/error.hpp"

namespace pgkm::service {

HostCalls::HostCalls(const PgkmServiceHost &host) : host_(host), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    if (!event_.is_open())
        throw Error(PGKM_OUT_OF_MEMORY, "no file descriptor is free");
}

void HostCalls::wake() const
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof one);
}

PgkmSegment HostCalls::attach(std::uint32_t handle)
{
    Attach request = {};
    request.handle = handle;
    std::unique_lock<std::mutex> lock(mutex_);
    if (!stopped_) {
        attaches_.push_back(&request);
        wake();
        served_.wait(lock, [&] { return request.done || stopped_; });
    }
    if (!request.done)
        throw Error(PGKM_CANCELLED, "the GPU service is ending");
    if (!request.mapped)
        throw Error(PGKM_UNAVAILABLE, request.why);
    return request.segment;
}

void HostCalls::detach(const PgkmSegment &segment)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    detaches_.push_back(segment);
    wake();
}

void HostCalls::serve()
{
    std::uint64_t count;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
    std::unique_lock<std::mutex> lock(mutex_);
    while (!attaches_.empty() || !detaches_.empty()) {
        if (!detaches_.empty()) {
            const PgkmSegment segment = detaches_.front();
            detaches_.pop_front();
            lock.unlock();
            host_.detach(host_.arg, &segment);
            lock.lock();
            continue;
        }
        Attach *request = attaches_.front();
        attaches_.pop_front();
        lock.unlock();
        const bool mapped =
            host_.attach(host_.arg, request->handle, &request->segment, request->why, sizeof request->why) != 0;
        lock.lock();
        request->mapped = mapped;
        request->done = true;
        served_.notify_all();
    }
}

void HostCalls::stop()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    attaches_.clear();
    served_.notify_all();
}

} // namespace pgkm::service
