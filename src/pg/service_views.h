/*
 * service_views.h - mapping the clients' rows: what the GPU service's threads ask its own thread for.
 */
#ifndef PGKM_PG_SERVICE_VIEWS_H
#define PGKM_PG_SERVICE_VIEWS_H

#include "service/service.h"

/* PgkmServiceHost.attach: maps the view (shared_view.h) whose directory has this handle. 0, with the
 * reason in `why` and nothing left mapped, when that fails. */
int service_views_attach(void *, uint32_t handle, PgkmSegment *segment, char *why, size_t why_bytes);

/* PgkmServiceHost.detach: the rows are needed no more. */
void service_views_detach(void *, const PgkmSegment *segment);

#endif
