// service_fixture.hpp - a service in this process, for tests of what travels.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_backend.hpp"
#include "numeric/error.hpp"
#include "service/client/client.hpp"
#include "service/client/link.hpp"
#include "service/server/server.hpp"
#include "service/wire/fields.hpp"

namespace pgkm::service {

using std::chrono::milliseconds;

// Something that waits in a thread of its own.
class Waiter {
  public:
    explicit Waiter(std::function<void()> body)
        : thread_([this, body] {
              body();
              done_ = true;
          })
    {
    }
    ~Waiter() { thread_.join(); }
    bool done_within(milliseconds time) const
    {
        const auto end = std::chrono::steady_clock::now() + time;
        while (!done_ && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(milliseconds(1));
        return done_;
    }

  private:
    std::atomic<bool> done_{false};
    std::thread thread_;
};

// A service over the CPU backend, and a connection to it.
class Service : public testing::Test {
  protected:
    Service() : server_(*cpu_backend(), path().c_str(), {4, std::uint64_t{1} << 30}) {}
    ~Service() override
    {
        for (const int channel : channels_)
            pgkm_service_disconnect(channel);
    }

    static std::string path() { return "/tmp/pg_kmeans_service_test." + std::to_string(getpid()); }
    int connect()
    {
        const int channel = pgkm_service_connect(path().c_str());
        PgkmError error;
        EXPECT_GE(channel, 0);
        EXPECT_EQ(pgkm_service_ready(channel, 5000, &error), 1);
        channels_.push_back(channel);
        return channel;
    }
    // What the service answers to one raw request.
    PgkmStatus answer(Link &link, const Request &request, int passed = -1)
    {
        PgkmError error;
        return guarded(&error, [&] { link.ask(request, passed); });
    }
    // Changes what a client has written of a call: what it says of it, and the numbers among its fields.
    using Forge = std::function<void(CallRequest &, std::int64_t *)>;
    // What the service answers to a call over load_rows()'s rows, as a client writes it and after that is changed.
    PgkmStatus answer_call(
        Link &link, Call &call, const Forge &forge = [](CallRequest &, std::int64_t *) {})
    {
        Request request = link.write(call, {100, 2, PGKM_FLOAT32}).request;
        forge(request.call, reinterpret_cast<std::int64_t *>(link.arena().get()));
        return answer(link, request);
    }
    // Opens a job and loads 100 rows of two features, all zero.
    void load_rows(Link &link)
    {
        ASSERT_EQ(answer(link, request_of(Op::open), link.arena().fd()), PGKM_OK);
        const File rows = new_shared_file();
        extend_file(rows.get(), 0, 4096);
        Request load = request_of(Op::load);
        load.load.n = 100;
        load.load.d = 2;
        load.load.bytes = 4096;
        ASSERT_EQ(answer(link, load, rows.get()), PGKM_OK);
    }

    Server server_;
    std::vector<int> channels_;
};

} // namespace pgkm::service
