/*
 * views.h - maps the clients' rows in the GPU service. Its threads ask its main thread for that.
 */
#ifndef PGKM_PG_SERVICE_VIEWS_H
#define PGKM_PG_SERVICE_VIEWS_H

#include "service/service.h"

/* PgkmServiceHost.attach: maps the view (pg/shared/view.h) whose directory has this handle, once for all who
 * ask for it. 1; or 0 when that fails, with nothing mapped and the reason in `why`. */
int service_views_attach(void *, uint32_t handle, PgkmSegment *segment, char *why, size_t why_bytes);

/* PgkmServiceHost.detach: one who asked needs the rows no more. After the last one they are unmapped. */
void service_views_detach(void *, const PgkmSegment *segment);

#endif
