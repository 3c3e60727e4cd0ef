/*
 * module.cpp - what the server calls when it loads the library.
 */
#include "pg/compat.h"

#include "pg/settings.h"
#include "pg/version.h"

extern "C" {
PGKM_MODULE_MAGIC("pg_kmeans", PGKM_VERSION);

PGDLLEXPORT void _PG_init(void);
}

/* May run in the postmaster (shared_preload_libraries): starts nothing, touches no device. */
void _PG_init(void)
{
    pgkm_settings_define();
}
