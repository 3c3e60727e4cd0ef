// channel.hpp - messages over local sockets, each with or without a file descriptor.
#pragma once

#include <cstddef>

#include "numeric/platform.hpp"

namespace pgkm::service {

// Owns a file descriptor.
class File {
  public:
    File() = default;
    explicit File(int fd) : fd_(fd) {}
    File(File &&other) noexcept : fd_(other.release()) {}
    File &operator=(File &&other) noexcept;
    ~File();

    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    int release();

  private:
    int fd_ = -1;
};

// Sends one message, with a descriptor unless `passed` is negative. False when the other end is gone.
bool send_message(int socket, const void *message, std::size_t bytes, int passed = -1);

enum class Received { message, nothing, gone, other };

// Waits up to `milliseconds` (-1: for ever) for a message of exactly that size. A descriptor that
// comes with it goes to *passed. A message of another size, which is of another version of pg_kmeans,
// is `other`.
Received receive_message(int socket, void *message, std::size_t bytes, int milliseconds, File *passed = nullptr);

// A socket that listens at `path`, readable by this user alone; what was there is removed.
// Throws Error.
File listen_at(const char *path);

// A connection to `path` from a process of the same user; not open when nobody listens.
File connect_to(const char *path);

// Whether the process at the other end runs under this process's user.
bool same_user(int socket);

} // namespace pgkm::service
