/*
 * shards.h - where the rows of a table of Citus lie, from its catalogues.
 */
#ifndef PGKM_PG_NODES_SHARDS_H
#define PGKM_PG_NODES_SHARDS_H

#include "pg/nodes/servers.h"

/* Whether a table is Citus's: one that it shards or copies. Others are read by this server as if there were no Citus:
 * local tables, and shards on the servers that hold them. */
bool citus_owns_table(Oid relation);

/* The servers that hold the shards of a table of Citus, as NodeServer. This one may be among them: it is asked by a
 * connection, too, as Citus does. For locks that this session took on shards would stand against what Citus does with
 * them later in the transaction. Of several copies of a shard it is one: that of this server, if there is one. NIL
 * where all shards are here, or one has no server. */
List *shard_servers(Oid relation);

/* By which Citus itself would connect to a server as the current user: DefElem. */
List *shard_options(const NodeServer *server);

/* Whether this transaction has had Citus work on other servers. What it has changed there is seen by Citus alone. */
bool shard_transaction(void);

#endif
