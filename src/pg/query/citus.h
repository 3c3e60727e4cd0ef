/*
 * citus.h - which tables are Citus's: those that it shards or copies.
 *
 * Others are read by this server as if there were no Citus: local tables, and shards on the servers that hold them.
 */
#ifndef PGKM_PG_QUERY_CITUS_H
#define PGKM_PG_QUERY_CITUS_H

#include "pg/compat.h"

bool citus_owns_table(Oid relation);

#endif
