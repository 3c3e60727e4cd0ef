// places.hpp - the contexts of a spread backend, one for each device of its list, and a thread for each at work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::spread {

class Places {
  public:
    // Opens `inner` for each of the options' devices. Threads and host memory are shared out. Throws Error.
    Places(const PgkmBackend &inner, const PgkmOpen &options);
    ~Places();
    Places(const Places &) = delete;
    Places &operator=(const Places &) = delete;

    const PgkmBackend &inner() const { return inner_; }
    std::size_t count() const { return places_.size(); }
    PgkmContext *context(std::size_t place) const { return places_[place].context; }
    // Device memory of each, in bytes; 0: not limited.
    std::uint64_t device_memory() const { return device_memory_; }

    // Calls body(place, error) for each of these places at once, the first in the calling thread, which alone reports
    // progress. When one fails the others are cancelled. Throws what failed first.
    using Body = std::function<PgkmStatus(std::size_t place, PgkmError *error)>;
    void run(const std::vector<std::size_t> &which, const Body &body);

    // The caller's host, and whether a place has failed in this run: what ends a wait.
    const PgkmHost &host() const { return host_; }
    const std::atomic<bool> &failed() const { return failed_; }

  private:
    struct Place {
        Places *owner;
        PgkmContext *context = nullptr;
        std::atomic<std::uint64_t> bytes_moved{0};
    };
    static int cancelled(void *place);
    static void report(void *place, const PgkmProgress *progress);
    PgkmHost host_of(Place &place) const;

    const PgkmBackend &inner_;
    const PgkmHost host_;
    const std::uint64_t device_memory_;
    std::uint64_t devices_ = 0; // as PgkmProgress has them
    std::vector<Place> places_;
    std::atomic<bool> failed_{false};
    std::atomic<const Place *> reporter_{nullptr}; // the place of the calling thread
};

} // namespace pgkm::spread
