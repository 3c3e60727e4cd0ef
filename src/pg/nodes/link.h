/*
 * link.h - calls to another server over a connection of libpq. They never block and never raise.
 *
 * A thread of the job makes them, too. So nothing here calls the server that this is a process of. A server that works
 * tells so once a second (pgkm_heartbeat). One that says nothing for the timeout is given up.
 */
#ifndef PGKM_PG_NODES_LINK_H
#define PGKM_PG_NODES_LINK_H

#include "libpq-fe.h"

#include "numeric/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a server that says nothing for too long. */
#define LINK_SILENT "the server has not answered within pg_kmeans.node_timeout"

/* Sockets that a link may have open at one time: a second one tells of a cancel. */
#ifdef LIBPQ_HAS_ASYNC_CANCEL
#define LINK_SOCKETS 2
#else
#define LINK_SOCKETS 1
#endif

struct NodeLink {
    PGconn *conn;                  /* NULL: none, or closed */
    PGresult *result;              /* of the last call, until the next one */
    bool busy;                     /* a call is under way */
    struct pg_cancel_conn *cancel; /* NULL: the call was not cancelled */
    PostgresPollingStatusType cancel_state;
    int timeout_ms; /* of a call; 0: the caller minds it */
    int64_t heard;  /* when anything came from it last: ms of a clock that only goes on */
};

/* Begins a statement whose result comes as text; or, with one bytea as its parameter, one whose result is one, too.
 * 0, or -1 with the reason in *error. */
int link_call(NodeLink *link, const char *sql, const void *bytes, size_t size, PgkmError *error);

/* Waits up to `milliseconds` for its end: 1 with link->result, 0 not yet, -1 failed. */
int link_wait(NodeLink *link, int milliseconds, PgkmError *error);

/* For how long nothing has come from the server, in ms; and takes it that something has come. */
int64_t link_silence(const NodeLink *link);
void link_heard(NodeLink *link);

/* Begins to tell the server to cancel the call, if one is under way and the server has answered lately. It waits for
 * nothing. With a libpq before 17, which cannot do so without blocking, nothing is told: the server notices when the
 * connection is closed. */
void link_cancel(NodeLink *link);

/* Goes on with it for up to `milliseconds`. Whether the server has not taken it yet. */
bool link_cancelling(NodeLink *link, int milliseconds);

/* Closes it. What the server is doing for it ends when the server notices, within a second. */
void link_close(NodeLink *link);

#endif
