/*
 * nodes.h - the other servers that hold rows of a relation: foreign tables of postgres_fdw among its partitions, or
 * shards of Citus.
 *
 * Each server is asked by one connection of its own to load its rows and to work on them (src/pg/serve is the other
 * end). Connections are made with the options of the foreign server and of the caller's user mapping, or as Citus makes
 * its own. They are closed with the memory context of the call, and with them goes all that the servers hold for it.
 */
#ifndef PGKM_PG_NODES_NODES_H
#define PGKM_PG_NODES_NODES_H

#include "pg/query/query.h"

#include "engine/api.h"

extern "C" {
#include "nodes/pg_list.h"
}

struct Nodes;

/*
 * The servers that hold rows of the query, connected and told to load them; *local: the leaves whose rows are here.
 * NULL where no rows lie elsewhere, or the executor has to read them; a NOTICE says why if it could have been
 * otherwise. Errors name the server.
 */
Nodes *nodes_begin(const TableQuery *query, MemoryContext context, List **local);

/* Waits until all have loaded their rows. False, with a NOTICE, where a server's rows are of another type. */
bool nodes_await(Nodes *nodes, PgkmElement element);

/* After that: rows that take part, in all of them; features of these (0: no rows); and the list for a request, with
 * which they are at work until nodes_rest. */
int64 nodes_rows(const Nodes *nodes);
int32 nodes_features(const Nodes *nodes);
const PgkmNode *nodes_list(Nodes *nodes, int64 *count);

/* For nodes that outlive a call: whether all connections stand, and whether an error has left them at work. Then nobody
 * knows what they have made of the rows. */
void nodes_rest(Nodes *nodes);
bool nodes_stand(const Nodes *nodes);
bool nodes_are_at_work(const Nodes *nodes);

/* Closes the connections. */
void nodes_end(Nodes *nodes);

#endif
