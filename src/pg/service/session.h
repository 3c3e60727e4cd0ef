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
 * Connects to the service for one job, and starts the service if it does not run: sets settings->channel.
 * The channel is 0 when there is no service to be had: it is off, no worker slot is free, the server is in
 * single-user mode, or there is no plugin. The job then reaches the device from this process. Sets
 * settings->no_device when it is known that there is no device. Heeds interrupts while it waits.
 */
void pgkm_service_acquire(PgkmSettings *settings);

/*
 * The same for a look at the service, which starts none and waits for a second at most. NULL; or why nothing can be
 * said of devices: the service is not started, or does not answer.
 */
const char *pgkm_service_look(PgkmSettings *settings);

/* Whether the service still answers on a channel that no job uses at the moment. */
bool pgkm_service_answers(int channel);

/* Gives a channel back, in whatever state the job left it; 0 is allowed. Never raises. */
void pgkm_service_release(int channel);

/* The service's process ID; 0: it does not run. */
int pgkm_service_pid(void);

/* Whether the service runs and this session may use it. */
bool pgkm_service_runs(void);

#endif
