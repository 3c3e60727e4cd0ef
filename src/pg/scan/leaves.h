/*
 * leaves.h - the tables that hold a relation's rows.
 */
#ifndef PGKM_PG_SCAN_LEAVES_H
#define PGKM_PG_SCAN_LEAVES_H

extern "C" {
#include "postgres.h"
#include "nodes/pg_list.h"
}

/* OIDs of the tables in the order in which a SELECT reads them. Each is locked as by a SELECT. */
List *scan_leaves(Oid relation);

#endif
