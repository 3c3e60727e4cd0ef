// tasks.cpp - lends the engine's threads to work of the server that calls nothing of it.
#include "engine/api.h"

#include "numeric/error.hpp"
#include "numeric/thread_pool.hpp"

PgkmStatus pgkm_run_tasks(int64_t tasks, int32_t threads, void (*task)(void *arg, int64_t i), void *arg,
                          PgkmInterrupted interrupted, PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        pgkm::parallel_for(tasks, threads, [&](std::int64_t i, int worker) {
            if (worker == 0 && interrupted != nullptr && interrupted() != 0)
                throw pgkm::Error(PGKM_CANCELLED, "cancelled");
            task(arg, i);
        });
    });
}
