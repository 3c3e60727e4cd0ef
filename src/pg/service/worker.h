/*
 * worker.h - the background worker that is the GPU service.
 */
#ifndef PGKM_PG_SERVICE_WORKER_H
#define PGKM_PG_SERVICE_WORKER_H

#include "pg/compat.h"

extern "C" {
#include "postmaster/bgworker.h"
}

#include "service/service.h"

/* Starts it with the server; for _PG_init in the postmaster. */
void pgkm_service_register(void);

/* Starts it from a session; NULL when no worker slot is free (max_worker_processes). */
BackgroundWorkerHandle *pgkm_service_launch(void);

#endif
