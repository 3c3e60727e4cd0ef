/*
 * options.h - where another server is, and as whom the caller may connect to it.
 */
#ifndef PGKM_PG_NODES_OPTIONS_H
#define PGKM_PG_NODES_OPTIONS_H

#include "pg/compat.h"

extern "C" {
#include "foreign/foreign.h"
#include "nodes/pg_list.h"
}

/* Whether a server belongs to postgres_fdw. */
bool node_is_postgres(Oid server);

/* Whether a user who is no superuser gives no password in the mapping, as postgres_fdw wants it. */
bool node_lacks_password(UserMapping *user);

/* As libpq takes them: those of these options that are for connections, palloc'd, with a NULL behind the last. The last
 * of a name counts. */
void node_connect_options(List *options, const char ***keywords, const char ***values);

/* 2F003 where a user who has to give a password was let in without it. To be asked when the connection stands. */
void node_check_password(UserMapping *user, bool password_used);

/* An option of that name, or NULL. */
const char *node_option(List *options, const char *name);

#endif
