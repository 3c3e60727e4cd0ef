/*
 * state.h - what all processes of the server know of the GPU service: a small struct in shared memory.
 */
#ifndef PGKM_PG_SERVICE_STATE_H
#define PGKM_PG_SERVICE_STATE_H

#include "pg/compat.h"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/spin.h"
}

/* Where the service listens, and what it locks, relative to the data directory: a folder whose
 * contents the server itself leaves out of base backups. */
#define PGKM_SERVICE_SOCKET "pg_stat_tmp/pg_kmeans.service"
#define PGKM_SERVICE_LOCK "pg_stat_tmp/pg_kmeans.lock"

struct ServiceState {
    slock_t mutex;         /* guards all of it */
    pid_t pid;             /* of the service; 0: none */
    TimestampTz launched;  /* when a session asked for a worker that has not begun yet; 0: none */
    TimestampTz started;   /* when the service began to listen; 0: it does not */
    TimestampTz no_device; /* when it was found that there is none; 0: not known */
    uint32 plugin;         /* for which plugin: its path's hash */
    char reason[256];      /* why there is none */
};

/* The struct, which whoever asks first makes; NULL when there is no shared memory for it. */
ServiceState *pgkm_service_state(void);

/* The plugin's path as ServiceState keeps it. */
uint32 pgkm_service_plugin_hash(const char *path);

#endif
