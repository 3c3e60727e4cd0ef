/*
 * worker.h - the background worker that is the GPU service: its start, and the clients' rows in it.
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

/* PgkmServiceHost.attach: maps the view (pg/shared/view.h) whose directory has this handle, once for all who
 * ask for it. 1; or 0 when that fails, with nothing mapped and the reason in `why`. */
int service_views_attach(void *unused, uint32_t handle, PgkmSegment *segment, char *why, size_t why_bytes);

/* PgkmServiceHost.detach: one who asked needs the rows no more. After the last one they are unmapped. */
void service_views_detach(void *unused, const PgkmSegment *segment);

#endif
