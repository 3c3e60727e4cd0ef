// rows.hpp - a client's rows, mapped by the service.
#pragma once

#include "service/host_calls.hpp"
#include "service/memory.hpp"
#include "service/protocol.hpp"

namespace pgkm::service {

class Rows {
  public:
    // Maps them: the server's segment, or the memory that came along. Throws Error.
    Rows(HostCalls &host, const LoadRequest &request, File passed);
    ~Rows();
    Rows(const Rows &) = delete;
    Rows &operator=(const Rows &) = delete;

    const PgkmPoints &points() const { return points_; }
    std::uint64_t     bytes() const; // of values and weights

  private:
    const char *map(const LoadRequest &request, File passed);

    HostCalls  &host_;
    PgkmPoints  points_ = {};
    PgkmSegment segment_ = {}; // of the server; handle 0: none
    Mapping     copy_;
};

} // namespace pgkm::service
