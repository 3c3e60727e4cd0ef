/*
 * service.h - the GPU service as PostgreSQL's side sees it: plain data and C functions.
 *
 * The process that runs the service starts it, looks at its counts now and then, and stops it in the end. Everything
 * else happens in threads that never call the server. No function here throws.
 */
#ifndef PGKM_SERVICE_H
#define PGKM_SERVICE_H

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of each device. */
typedef struct PgkmServiceLimits {
    int32_t jobs;           /* calls at work at once, >= 1 */
    uint64_t device_memory; /* bytes for all jobs together; 0: what was free at the start */
} PgkmServiceLimits;

/* The most devices that the service looks at. */
#define PGKM_SERVICE_DEVICES 64

typedef struct PgkmDeviceCounts {
    int32_t ordinal;
    int32_t jobs;         /* whose rows are there, or were last */
    int32_t running;      /* calls of theirs at work */
    int32_t waiting;      /* for a turn or for memory */
    uint64_t memory_held; /* bytes of device memory that jobs hold */
} PgkmDeviceCounts;

typedef struct PgkmServiceCounts {
    PgkmDeviceCounts all; /* all devices together, and jobs of all sessions; ordinal -1 */
    int32_t failed;       /* a device failed: end this process */
    int32_t n_devices;    /* that are usable */
    uint64_t requests;    /* since the start */
    char failure[256];
    PgkmDeviceCounts devices[PGKM_SERVICE_DEVICES];
} PgkmServiceCounts;

typedef struct PgkmService PgkmService;

/* Called from any thread when a device has failed: the process is to look at the counts. */
typedef void (*PgkmServiceFailed)(void);

/* Loads the plugin at `plugin`, looks for a usable device, and listens at `path`. Takes as long
 * as the driver does to start. PGKM_UNAVAILABLE with the reason when there is no device. */
PgkmStatus pgkm_service_start(const char *plugin, const char *path, const PgkmServiceLimits *limits,
                              PgkmServiceFailed on_failure, PgkmService **service, PgkmError *error);
/* Cancels and ends everything, removes the path. NULL is allowed. */
void pgkm_service_stop(PgkmService *service);

void pgkm_service_set_limits(PgkmService *service, const PgkmServiceLimits *limits);
void pgkm_service_counts(PgkmService *service, PgkmServiceCounts *counts);

/* No client is served any more, and 1 returned, unless there is a job or was a request since
 * counts.requests was that number. */
int pgkm_service_close_if_idle(PgkmService *service, uint64_t requests_seen);

/* The session's side. pgkm_service_connect returns a connected socket, or -1 when nobody listens.
 * pgkm_service_ready says whether the service has answered: 1, 0 not yet, -1 it is gone, or
 * refuses (*error, unless empty, says why). */
int pgkm_service_connect(const char *path);
int pgkm_service_ready(int channel, int milliseconds, PgkmError *error);
/* For a connection that was used before: asks whether the service is still there, for
 * pgkm_service_ready to hear. 0 when it cannot be asked any more. */
int pgkm_service_ask_again(int channel);
void pgkm_service_disconnect(int channel);

#ifdef __cplusplus
}
#endif
#endif
