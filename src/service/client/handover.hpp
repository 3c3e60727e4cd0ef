// handover.hpp - rows on their way to the service.
#pragma once

#include "service/wire/channel.hpp"
#include "service/client/link.hpp"

namespace pgkm::service {

// What the service is told of rows, and the file in which they lie: the link's segment if that holds them all, or else
// a copy that only this process has.
struct HandedOver {
    LoadRequest place;
    File copy;
    int file;
};
// Throws Error: the limit of host memory, no memory, cancelled.
HandedOver hand_over(const Link &link, const PgkmPoints &points);

} // namespace pgkm::service
