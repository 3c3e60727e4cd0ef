/*
 * views.h - mapping the clients' rows: what the GPU service's threads ask its own thread for.
 */
#ifndef PGKM_PG_SERVICE_VIEWS_H
#define PGKM_PG_SERVICE_VIEWS_H

#include "service/service.h"

/* PgkmServiceHost.attach: maps the view (pg/shared/view.h) whose directory has this handle, once for all
 * who ask for it. 0, with the reason in `why` and nothing left mapped, when that fails. */
int service_views_attach(void *, uint32_t handle, PgkmSegment *segment, char *why, size_t why_bytes);

/* PgkmServiceHost.detach: one who asked needs the rows no more. With the last one they are unmapped. */
void service_views_detach(void *, const PgkmSegment *segment);

#endif
