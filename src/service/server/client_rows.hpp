// client_rows.hpp - a client's rows, mapped by the service.
#pragma once

#include "service/wire/mapping.hpp"
#include "service/wire/protocol.hpp"

namespace pgkm::service {

class ClientRows {
  public:
    // Maps the memory that came along. Throws Error.
    ClientRows(const LoadRequest &request, File passed);

    const PgkmPoints &points() const { return points_; }
    std::uint64_t bytes() const; // of values and weights

  private:
    PgkmPoints points_ = {};
    Mapping memory_;
};

} // namespace pgkm::service
