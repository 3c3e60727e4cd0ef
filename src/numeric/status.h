/*
 * status.h - how a call ended, in plain C: a status and a text. Every C function of ours reports by it;
 * src/pg maps each status to its SQLSTATE.
 */
#ifndef PGKM_NUMERIC_STATUS_H
#define PGKM_NUMERIC_STATUS_H

typedef enum PgkmStatus {
    PGKM_OK = 0,
    PGKM_CANCELLED,     /* PgkmHost.cancelled said so */
    PGKM_INVALID,       /* an argument is out of its range (22023) */
    PGKM_OUT_OF_MEMORY, /* an allocation failed (53200) */
    PGKM_LIMIT,         /* a configured memory limit would be passed (54000) */
    PGKM_UNAVAILABLE,   /* no usable device, driver or plugin (0A000) */
    PGKM_UNSUPPORTED,   /* this backend lacks the strategy asked for (0A000) */
    PGKM_DEVICE_ERROR,  /* the device failed during the job (58000) */
    PGKM_INTERNAL,      /* a bug (XX000) */
    PGKM_NODE_FAILED    /* another server failed, or the connection to it (08006, or what it said) */
} PgkmStatus;

typedef struct PgkmError {
    PgkmStatus status;
    char text[512];
    /* Of PGKM_NODE_FAILED what that server said, of PGKM_LIMIT 54000 where every backend of the job has that limit.
     * Empty: that of the status. */
    char sqlstate[6];
} PgkmError;

#endif
