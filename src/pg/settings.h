/*
 * settings.h - the settings pg_kmeans.*: their definitions and current values.
 */
#ifndef PGKM_PG_SETTINGS_H
#define PGKM_PG_SETTINGS_H

extern "C" {
#include "postgres.h"
}

#include "engine/api.h"

/* Defines the settings; for _PG_init. */
void pgkm_settings_define(void);

/* Fills `settings` with the current values. Its strings are static. */
void pgkm_settings_fill(PgkmSettings *settings);

/* pg_kmeans.memory_limit in bytes; 0: none. */
uint64 pgkm_memory_limit(void);

/* pg_kmeans.service: whether devices are reached through the GPU service. */
bool pgkm_service_enabled(void);

/* pg_kmeans.max_gpu_jobs and .gpu_idle_timeout (seconds; 0: never). */
int pgkm_max_gpu_jobs(void);
int pgkm_gpu_idle_timeout(void);

/* pg_kmeans.distributed: whether other servers work on the rows that they hold. */
bool pgkm_distributed(void);

/* pg_kmeans.node_timeout in ms: how long another server may say nothing. */
int pgkm_node_timeout_ms(void);

/* pg_kmeans.scan: how table functions read rows. Auto: from the pages where that is possible. */
enum ScanChoice { SCAN_AUTO, SCAN_DIRECT, SCAN_EXECUTOR };

ScanChoice pgkm_scan_choice(void);

#endif
