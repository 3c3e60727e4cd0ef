/*
 * places.h - which rows of a relation lie on which other servers, and under which names.
 */
#ifndef PGKM_PG_NODES_PLACES_H
#define PGKM_PG_NODES_PLACES_H

#include "pg/query/query.h"

extern "C" {
#include "nodes/pg_list.h"
}

/* The foreign tables of one server. */
struct NodePlace {
    Oid server;
    List *tables; /* OIDs */
};

/* The servers that hold rows of the query, as NodePlace; *local: tables that hold the others. NIL where none does, or
 * where foreign tables are not all of postgres_fdw. All tables are locked as by a SELECT. */
List *node_places(const TableQuery *query, List **local);

/* Whether the relation can be updated but has rows on other servers: of postgres_fdw alone, or of Citus. */
bool node_rows_elsewhere(Oid relation);

/* Why the executor has to read the rows, a sentence; NULL: it need not. */
const char *node_obstacle(const TableQuery *query, List *places, List *local);

/* Arguments of kmeans_node_load for the tables of one server, as texts: regclass[], text[] of the features of all
 * tables, text[] of their weights (NULL: none). */
void node_load_arguments(const TableQuery *query, const NodePlace *place, const char **tables, const char **features,
                         const char **weights);

#endif
