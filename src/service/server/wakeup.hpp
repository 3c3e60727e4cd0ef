// wakeup.hpp - lets threads of the service wake the server's thread.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "numeric/error.hpp"
#include "service/wire/channel.hpp"

namespace pgkm::service {

class Wakeup {
  public:
    Wakeup() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    {
        if (!event_.is_open())
            throw Error(PGKM_OUT_OF_MEMORY, "no file descriptor is free");
    }

    // Readable from wake() to the next heed().
    int get() const { return event_.get(); }
    void wake() const
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof one);
    }
    void heed() const
    {
        std::uint64_t count;
        [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof count);
    }

  private:
    File event_;
};

} // namespace pgkm::service
