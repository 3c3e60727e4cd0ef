// handover.hpp - rows on their way to the service.
#pragma once

#include "service/wire/channel.hpp"
#include "service/client/link.hpp"

namespace pgkm::service {

// Where the rows lie: in the link's segment, whose *file is then set, if that holds them all; or else, *file being -1,
// behind one another in a copy.
LoadRequest place_rows(const Link &link, const PgkmPoints &points, int *file);

// That copy, of memory that only this process has. Throws Error: the limit of host memory, no
// memory, cancelled.
File copy_rows(const Link &link, const PgkmPoints &points, const LoadRequest &place);

} // namespace pgkm::service
