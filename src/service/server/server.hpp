// server.hpp - the service's loop: takes connections and notices when their clients are gone.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <thread>

#include "service/server/connection.hpp"

namespace pgkm::service {

class Server {
  public:
    // Listens at `path`. Throws Error, also PGKM_UNAVAILABLE when the table has no usable device.
    Server(const PgkmBackend &table, const char *path, const PgkmServiceLimits &limits,
           PgkmServiceFailed on_failure = nullptr);
    // Ends all connections; what the server has mapped for them is given back.
    ~Server();
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    ServerState &state() { return *state_; }
    void set_limits(const PgkmServiceLimits &limits);

  private:
    void run() noexcept;
    void watch();
    void accept_one();

    std::unique_ptr<ServerState> state_;
    std::string path_;
    File listening_;
    File stop_;                                          // readable when the thread shall end
    std::list<std::unique_ptr<Connection>> connections_; // the thread's own
    std::thread thread_;
};

} // namespace pgkm::service
