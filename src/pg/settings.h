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

/* What a session may have at most, in bytes; 0: no limit. And the setting that says so: pg_kmeans.memory_limit, or
 * pg_kmeans.max_memory where that is less. */
uint64 pgkm_memory_limit(void);
const char *pgkm_memory_limit_name(void);

/* What all sessions together may have: pg_kmeans.max_memory, in bytes, and pg_kmeans.max_threads; 0: no limit. */
uint64 pgkm_max_memory(void);
int pgkm_max_threads(void);

/* pg_kmeans.node_timeout in ms: how long another server may say nothing. */
int pgkm_node_timeout_ms(void);

/* pg_kmeans.scan: how table functions read rows. Auto: from the pages where that is possible. */
enum ScanChoice { SCAN_AUTO, SCAN_DIRECT, SCAN_EXECUTOR };

/* Settings that need no conversion. */
extern int pgkm_scan_choice;      /* a ScanChoice */
extern int pgkm_queue_timeout;    /* ms; 0: without end */
extern bool pgkm_service_enabled; /* whether devices are reached through the GPU service */
extern int pgkm_max_gpu_jobs;
extern int pgkm_gpu_idle_timeout; /* seconds; 0: never */
extern int pgkm_max_levels;       /* of a column that is a category */
extern bool pgkm_distributed;     /* whether other servers work on the rows that they hold */

#endif
