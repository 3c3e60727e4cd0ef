// contexts.hpp - the contexts of a spread backend, one for each device of its list, and a thread for each at work.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::spread {

// A context is named by its number in the list.
class Contexts {
  public:
    // Opens `inner` for each of the options' devices. Threads and host memory are shared out. Throws Error.
    Contexts(const PgkmBackend &inner, const PgkmOpen &options);
    ~Contexts();
    Contexts(const Contexts &) = delete;
    Contexts &operator=(const Contexts &) = delete;

    const PgkmBackend &inner() const { return inner_; }
    std::size_t count() const { return opened_.size(); }
    PgkmContext *get(std::size_t context) const { return opened_[context].context; }
    // Device memory that each may take, in bytes: its limit, or what was free. 0: not known.
    std::uint64_t device_memory() const { return device_memory_; }

    // Calls body(context, error) for each of these at once, the first in the calling thread, which alone reports
    // progress. When one fails the others are cancelled. Throws what failed first.
    using Body = std::function<PgkmStatus(std::size_t context, PgkmError *error)>;
    void run(const std::vector<std::size_t> &which, const Body &body);

    // The caller's host, and whether a context has failed in this run: what ends a wait.
    const PgkmHost &host() const { return host_; }
    const std::atomic<bool> &failed() const { return failed_; }

  private:
    struct Opened {
        Contexts *owner;
        PgkmContext *context = nullptr;
        std::atomic<std::uint64_t> bytes_moved{0};
    };
    static int cancelled(void *opened);
    static void report(void *opened, const PgkmProgress *progress);

    const PgkmBackend &inner_;
    const PgkmHost host_;
    std::uint64_t device_memory_;
    std::uint64_t devices_ = 0; // as PgkmProgress has them
    std::vector<Opened> opened_;
    std::atomic<bool> failed_{false};
    std::atomic<const Opened *> reporter_{nullptr}; // that of the calling thread
};

} // namespace pgkm::spread
