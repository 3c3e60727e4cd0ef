// mapping.hpp - anonymous shared memory: made by one process, mapped by two, gone with them.
//
// No name in any file system: nothing is left behind whatever happens to either process. It
// never shrinks (sealed), so that no access to checked memory can fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "numeric/platform.hpp"
#include "service/wire/channel.hpp"

namespace pgkm::service {

struct Unmap {
    std::size_t bytes = 0;
    void operator()(char *address) const;
};
// A part of a file; unmapped at the end.
using Mapping = std::unique_ptr<char[], Unmap>;
// NULL for no bytes. Throws Error(PGKM_OUT_OF_MEMORY).
Mapping map_file(int fd, std::uint64_t offset, std::size_t bytes);

// A new file of no name and no length. Throws Error.
File new_shared_file();

// Gives the file this length, all of it backed by memory. Throws Error(PGKM_OUT_OF_MEMORY).
void extend_file(int fd, std::uint64_t from, std::uint64_t bytes);

// Whether the file is at least that long and cannot shrink any more.
bool is_safe(int fd, std::uint64_t bytes);

} // namespace pgkm::service
