/*
 * servers.h - the servers of a fit: connections to all of them at once, and calls that they work on side by side.
 */
#ifndef PGKM_PG_NODES_SERVERS_H
#define PGKM_PG_NODES_SERVERS_H

#include "pg/nodes/link.h"
#include "pg/nodes/places.h"

#include "backend/backend.h"

extern "C" {
#include "foreign/foreign.h"
}

struct NodeServer {
    NodeLink link;
    NodeLink probe; /* asks whether the server is alive, while it says nothing */
    const char **keywords;
    const char **values;
    int descriptors;    /* counted by this server's account of open files */
    UserMapping *user;  /* NULL: a server of Citus */
    const char *name;   /* for errors: server "..." */
    const char *schema; /* of the extension there; NULL: it has none of this version */
    const char *call;   /* the statement that passes a request on */
    int64 n;
    int32 d;
    PgkmElement element;
};

/* Connects to those of the places, NodePlace, one for each of the servers, which are zero before. Errors name the
 * server. */
void servers_connect(NodeServer *servers, List *places);

/* Whether every server has this version of the extension; a NOTICE names one that has not. */
bool servers_find_extension(NodeServer *servers, int count);

/* Begins a statement with text parameters. */
void server_call(NodeServer *server, const char *sql, int count, const char *const *parameters);

/* Waits for the calls of all servers that are at work. */
void servers_await(NodeServer *servers, int count);

void server_close(NodeServer *server);

#endif
