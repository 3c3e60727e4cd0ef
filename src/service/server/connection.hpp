// connection.hpp - one client of the service, served by a thread of its own.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "service/server/client_context.hpp"

namespace pgkm::service {

class Connection {
  public:
    // Starts the thread. Throws std::system_error.
    Connection(ServerState &state, File socket);
    // Hangs up and waits for the thread's end.
    ~Connection();
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    int socket() const { return socket_.get(); }
    // The client is gone, or shall be: a call at work is cancelled.
    void hang_up();
    bool has_hung_up() const { return hung_up_.load(); }
    bool has_ended() const { return ended_.load(); }

  private:
    void run() noexcept;
    void answer(const Request &request, File passed, Reply *reply);

    ServerState &state_;
    File socket_;
    std::atomic<bool> hung_up_{false}, ended_{false};
    std::unique_ptr<ClientContext> client_; // between open and close; the thread's own
    std::thread thread_;
};

} // namespace pgkm::service
