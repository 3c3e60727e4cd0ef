/*
 * places.h - which rows of a relation lie on which other servers, and under which names.
 */
#ifndef PGKM_PG_NODES_PLACES_H
#define PGKM_PG_NODES_PLACES_H

#include "pg/query/query.h"

extern "C" {
#include "nodes/pg_list.h"
}

/* A table on another server. */
struct NodeTable {
    const char *name; /* there, as in SQL */
    Oid foreign;      /* the foreign table of postgres_fdw; InvalidOid: a shard of Citus */
};

/* The tables on one server. */
struct NodePlace {
    const char *name; /* for errors: server "..." */
    List *tables;     /* NodeTable */
    Oid server;       /* of postgres_fdw; InvalidOid: a server of Citus, with what follows */
    int32 node;       /* its number in pg_dist_node */
    const char *host;
    const char *port;
};

/* Adds a table to those of its server: a foreign server, or a node of Citus. A place that is new is zero but for these
 * two and the table. */
NodePlace *node_add_table(List **places, Oid server, int32 node, const char *name, Oid foreign);

/* The servers that hold rows of the query, as NodePlace. NIL where none does, or where foreign tables are not all of
 * postgres_fdw. All tables are locked as by a SELECT. */
List *node_places(const TableQuery *query);

/* Whether the relation can be updated but has rows on other servers: of postgres_fdw alone, or of Citus. */
bool node_rows_elsewhere(Oid relation);

/* Whether this transaction may have changed rows on other servers, which the connections of a fit would not see. */
bool node_may_have_changed(Oid relation);

/* Why the executor has to read the rows, a sentence; NULL: it need not. *local: tables that hold the rows of this
 * server (ScanTable). 42501 where the caller may not read the relation. */
const char *node_obstacle(const TableQuery *query, List *places, List **local);

/* Arguments of pgkm_node_load for the tables of one server, as texts: regclass[], text[] of the features of all
 * tables, text[] of their weights (NULL: none). */
void node_load_arguments(const TableQuery *query, const NodePlace *place, const char **tables, const char **features,
                         const char **weights);

#endif
