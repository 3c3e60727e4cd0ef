/*
 * options.h - where another server is, and as whom the caller may connect to it.
 */
#ifndef PGKM_PG_NODES_OPTIONS_H
#define PGKM_PG_NODES_OPTIONS_H

#include "pg/nodes/servers.h"

/* Whether a server belongs to postgres_fdw. */
bool node_is_postgres(Oid server);

/* Whether a user who is no superuser gives no password in the mapping for a server of postgres_fdw, as that wants it.
 */
bool node_lacks_password(const NodeServer *server);

/* Finds the server's options of connections, as libpq takes them: the last of a name counts. */
void node_connect_options(NodeServer *server);

/* 2F003 where a user who has to give a password was let in without it. To be asked when the connection stands. */
void node_check_password(const NodeServer *server);

/* An option of that name, or NULL. */
const char *node_option(List *options, const char *name);

#endif
