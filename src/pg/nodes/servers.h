/*
 * servers.h - the servers of a fit: connections to all of them, and calls that they work on side by side.
 */
#ifndef PGKM_PG_NODES_SERVERS_H
#define PGKM_PG_NODES_SERVERS_H

#include "pg/compat.h"
#include "pg/nodes/link.h"

#include "backend/backend.h"

extern "C" {
#include "foreign/foreign.h"
#include "nodes/pg_list.h"
}

/* A table on another server. */
struct NodeTable {
    const char *name; /* there, as in SQL */
    Oid foreign;      /* the foreign table of postgres_fdw; InvalidOid: a shard of Citus */
};

struct NodeServer {
    const char *name; /* for errors: server "..." */
    List *tables;     /* NodeTable */
    Oid server;       /* of postgres_fdw; InvalidOid: a server of Citus, with what follows */
    int32 node;       /* its number in pg_dist_node */
    const char *host;
    const char *port;
    /* From servers_connect() on: */
    const char **keywords;
    const char **values;
    NodeLink link;
    NodeLink probe;     /* shows whether the server is alive, while it says nothing */
    int descriptors;    /* counted by this server's account of open files */
    const char *schema; /* of the extension there; NULL: it has none of this version */
    const char *call;   /* the statement that passes a request on */
    /* Its rows that take part, once it has loaded them: */
    int64 n;
    int32 d;
    PgkmElement element;
};

/* Connects to the servers. Errors name one, here and below. */
void servers_connect(List *servers);

/* Whether every server has this version of the extension; a NOTICE names one that has not. */
bool servers_find_extension(List *servers);

/* Begins a statement. */
void server_call(NodeServer *server, const char *sql);

/* Waits for the calls of all servers that are at work. */
void servers_await(List *servers);

/* Ends what they do, and closes their connections. Never raises. */
void servers_close(List *servers);

#endif
