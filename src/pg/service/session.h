/*
 * session.h - a session's way to the GPU service.
 */
#ifndef PGKM_PG_SERVICE_SESSION_H
#define PGKM_PG_SERVICE_SESSION_H

extern "C" {
#include "postgres.h"
}

#include "engine/api.h"

/*
 * A connection to the service for one job, which is started if it does not run: sets
 * settings->channel. Leaves it 0 when there is none to be had (the service is off, no worker slot
 * is free, the server is in single-user mode, there is no plugin): the job then reaches the
 * device from this process. Sets settings->no_device when it is known that there is no device.
 *
 * Serves interrupts while it waits for the service to start.
 */
void pgkm_service_acquire(PgkmSettings *settings);

/* Whether the service still answers on a connection that no job uses at the moment. */
bool pgkm_service_answers(int channel);

/* Gives a connection back, in whatever state the job left it; 0 is allowed. Never raises. */
void pgkm_service_release(int channel);

/* The service's process; 0: it does not run. */
int pgkm_service_pid(void);

/* Whether it runs, and this session may use it. */
bool pgkm_service_runs(void);

#endif
