// mapping.hpp - anonymous shared memory: made by one process, mapped by two, gone with them.
//
// No name in any file system: nothing is left behind whatever happens to either process. It
// never shrinks (sealed), so that no access to checked memory can fault.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/platform.hpp"
#include "service/wire/channel.hpp"

namespace pgkm::service {

// A mapping of a part of a file; movable, unmapped at the end.
class Mapping {
  public:
    Mapping() = default;
    // Throws Error(PGKM_OUT_OF_MEMORY).
    Mapping(int fd, std::uint64_t offset, std::size_t bytes);
    Mapping(Mapping &&other) noexcept { swap(other); }
    Mapping &operator=(Mapping &&other) noexcept;
    ~Mapping();

    char *get() const { return static_cast<char *>(address_); }
    std::size_t bytes() const { return bytes_; }

  private:
    void swap(Mapping &other) noexcept;
    void *address_ = nullptr;
    std::size_t bytes_ = 0;
};

// A new file of no name and no length. Throws Error.
File new_shared_file();

// Gives the file this length, all of it backed by memory. Throws Error(PGKM_OUT_OF_MEMORY).
void extend_file(int fd, std::uint64_t from, std::uint64_t bytes);

// Whether the file is at least that long and cannot shrink any more.
bool is_safe(int fd, std::uint64_t bytes);

} // namespace pgkm::service
