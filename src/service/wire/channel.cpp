// channel.cpp - messages and descriptors over a Unix socket.
#include "service/wire/channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

constexpr int backlog = 128;

bool address_of(const char *path, sockaddr_un *address)
{
    *address = {};
    address->sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address->sun_path)
        return false;
    std::strcpy(address->sun_path, path);
    return true;
}

File new_socket()
{
    return File(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

// The descriptors of a message; only the first is kept, none is leaked.
void take_descriptors(msghdr &header, File *passed)
{
    for (cmsghdr *part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            File file(fd);
            if (passed != nullptr && !passed->is_open())
                *passed = std::move(file);
        }
    }
}

} // namespace

File &File::operator=(File &&other) noexcept
{
    File old(std::exchange(fd_, other.release()));
    return *this;
}

File::~File()
{
    if (fd_ >= 0)
        close(fd_);
}

int File::release()
{
    return std::exchange(fd_, -1);
}

bool send_message(int socket, const void *message, std::size_t bytes, int passed)
{
    iovec part = {const_cast<void *>(message), bytes};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof passed)] = {};
    if (passed >= 0) {
        header.msg_control = space;
        header.msg_controllen = sizeof space;
        cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof passed);
        std::memcpy(CMSG_DATA(rights), &passed, sizeof passed);
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes);
}

Received receive_message(int socket, void *message, std::size_t bytes, int milliseconds, File *passed)
{
    pollfd waited = {socket, POLLIN, 0};
    const int ready = poll(&waited, 1, milliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR))
        return Received::nothing;
    iovec part = {message, bytes};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(4 * sizeof(int))] = {};
    header.msg_control = space;
    header.msg_controllen = sizeof space;
    const ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return Received::nothing;
    if (got < 0)
        return Received::gone;
    take_descriptors(header, passed);
    const bool whole = got == static_cast<ssize_t>(bytes) && (header.msg_flags & MSG_TRUNC) == 0;
    return whole ? Received::message : got == 0 ? Received::gone : Received::other;
}

File listen_at(const char *path)
{
    sockaddr_un address;
    File socket = new_socket();
    const bool fits = address_of(path, &address);
    unlink(path);
    const bool listens = fits && socket.is_open() &&
                         bind(socket.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
                         chmod(path, S_IRUSR | S_IWUSR) == 0 && listen(socket.get(), backlog) == 0;
    if (!listens)
        throw Error(PGKM_INTERNAL,
                    std::string("cannot listen at \"") + path + "\": " + std::strerror(fits ? errno : ENAMETOOLONG));
    return socket;
}

File connect_to(const char *path)
{
    sockaddr_un address;
    File socket = new_socket();
    int status = -1;
    if (socket.is_open() && address_of(path, &address))
        do
            status = connect(socket.get(), reinterpret_cast<sockaddr *>(&address), sizeof address);
        while (status != 0 && errno == EINTR);
    if (status != 0 || !same_user(socket.get()))
        return File();
    return socket;
}

bool same_user(int socket)
{
    ucred peer = {};
    socklen_t bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

} // namespace pgkm::service
