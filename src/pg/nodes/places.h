/*
 * places.h - which rows of a relation lie on which other servers, and under which names.
 */
#ifndef PGKM_PG_NODES_PLACES_H
#define PGKM_PG_NODES_PLACES_H

#include "pg/nodes/servers.h"
#include "pg/query/query.h"

/* Adds a table to those of its server: a foreign server, or a node of Citus. A server that is new is zero but for these
 * two and the table. */
NodeServer *node_add_table(List **servers, Oid server, int32 node, const char *name, Oid foreign);

/* The servers that hold rows of the query, as NodeServer. NIL where none does, or where foreign tables are not all of
 * postgres_fdw. All tables are locked as by a SELECT. */
List *node_servers(const TableQuery *query);

/* Whether the relation can be updated but has rows on other servers: of postgres_fdw alone, or of Citus. */
bool node_rows_elsewhere(Oid relation);

/* Whether this transaction may have changed rows on other servers, which the connections of a fit would not see. */
bool node_may_have_changed(Oid relation);

/* Why the executor has to read the rows, a sentence; NULL: it need not. *local: tables that hold the rows of this
 * server (ScanTable). 42501 where the caller may not read the relation. */
const char *node_obstacle(const TableQuery *query, List *servers, List **local);

/* The call of pgkm_node_load for the tables of one server. */
const char *node_load_statement(const TableQuery *query, const NodeServer *server);

#endif
