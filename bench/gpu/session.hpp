// session.hpp - the plugin through its own table, for questions about whole calls.
#pragma once

#include <chrono>

#include "bench.hpp"

extern "C" const PgkmBackend *pgkm_backend_entry(std::uint32_t abi);

namespace bench {

inline double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void require(PgkmStatus status, const PgkmError &error)
{
    if (status != PGKM_OK)
        throw Error(status, error.text);
}

// Loaded points in an open context.
class Session {
  public:
    Session(const PgkmPoints &points, std::uint64_t device_limit, const PgkmHost &host = {})
    {
        PgkmOpen open = plain_options();
        open.device_memory_limit = device_limit;
        open.host = host;
        require(table->open(&open, &context_, &error), error);
        const PgkmStatus status = table->load(context_, &points, &data, &error);
        if (status != PGKM_OK)
            table->close(context_);
        require(status, error);
    }
    ~Session()
    {
        table->unload(data);
        table->close(context_);
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    const PgkmBackend *table = pgkm_backend_entry(PGKM_BACKEND_ABI);
    PgkmData *data = nullptr;
    PgkmError error{};

  private:
    PgkmContext *context_ = nullptr;
};

// Rows on the host, cheaply random: uniform bits around four levels.
std::vector<float> host_rows(std::int64_t n, int d);

} // namespace bench
