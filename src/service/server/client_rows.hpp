// client_rows.hpp - a client's rows, mapped by the service.
#pragma once

#include "service/server/host_calls.hpp"
#include "service/wire/mapping.hpp"
#include "service/wire/protocol.hpp"

namespace pgkm::service {

class ClientRows {
  public:
    // Maps them: the server's segment, or the memory that came along. Throws Error.
    ClientRows(HostCalls &host, const LoadRequest &request, File passed);
    ~ClientRows();
    ClientRows(const ClientRows &) = delete;
    ClientRows &operator=(const ClientRows &) = delete;

    const PgkmPoints &points() const { return points_; }
    std::uint64_t bytes() const; // of values and weights

  private:
    const char *map(const LoadRequest &request, File passed);

    HostCalls &host_;
    PgkmPoints points_ = {};
    PgkmSegment segment_ = {}; // of the server; handle 0: none
    Mapping copy_;
};

} // namespace pgkm::service
