// mapping.cpp - memory files and their mappings.
#include "service/wire/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

[[noreturn]] void fail(const char *what, int number)
{
    throw Error(PGKM_OUT_OF_MEMORY, std::string(what) + ": " + std::strerror(number));
}

} // namespace

void Unmap::operator()(char *address) const
{
    munmap(address, bytes);
}

Mapping map_file(int fd, std::uint64_t offset, std::size_t bytes)
{
    if (bytes == 0)
        return {};
    void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (address == MAP_FAILED)
        fail("could not map shared memory", errno);
    return {static_cast<char *>(address), Unmap{bytes}};
}

File new_shared_file()
{
    File file(memfd_create("pg_kmeans", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open() || fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        fail("could not create shared memory", errno);
    return file;
}

void extend_file(int fd, std::uint64_t from, std::uint64_t bytes)
{
    // Backed at once: a page that could not be had later would be a signal instead of an error.
    int number;
    do
        number = posix_fallocate(fd, static_cast<off_t>(from), static_cast<off_t>(bytes - from));
    while (number == EINTR);
    if (number != 0)
        fail("could not allocate shared memory", number);
}

bool is_safe(int fd, std::uint64_t bytes)
{
    struct stat facts;
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &facts) == 0 &&
           static_cast<std::uint64_t>(facts.st_size) >= bytes;
}

} // namespace pgkm::service
