/*
 * module.cpp - what the server calls when it loads the library.
 */
#include "pg/compat.h"

#include "pg/plan/plan.h"
#include "pg/service/worker.h"
#include "pg/settings.h"
#include "pg/version.h"

extern "C" {
#include "miscadmin.h"

PGKM_MODULE_MAGIC("pg_kmeans", PGKM_VERSION);

PGDLLEXPORT void _PG_init(void);
}

/* May run in the postmaster (shared_preload_libraries): touches no device, and asks for the GPU
 * service to be started with the server. */
void _PG_init(void)
{
    pgkm_settings_define();
    fit_once_install();
    labels_path_install();
    if (process_shared_preload_libraries_in_progress && pgkm_service_enabled)
        pgkm_service_register();
}
