/*
 * scan.h - rows straight from tables, by their access method, without the executor in between.
 *
 * The fast one of the two ways to read the rows of a query. It returns the same rows in the same order, and
 * raises the same errors about them, as the other one (pg/query/query.h). A large table is read by
 * parallel workers together; how many they are never shows in the result.
 */
#ifndef PGKM_PG_SCAN_SCAN_H
#define PGKM_PG_SCAN_SCAN_H

#include "pg/query/query.h"

extern "C" {
#include "access/attnum.h"
#include "nodes/pg_list.h"
}

/* A table of a query's SELECT. */
struct ScanTable {
    Oid id;
    AttrNumber places[FLEXIBLE_ARRAY_MEMBER]; /* its columns, from 0, by the numbers of table_query_name() */
};

/*
 * Whether the query can be read directly: where the planner reads its relation by sequential scans alone, whose tables
 * can be scanned by ranges of ctids. Not in serializable transactions. With pg_kmeans.scan = direct, or where the query
 * must be streamed, it raises 0A000 with the reason instead. When it is true, *tables lists the tables that hold the
 * rows (ScanTable), each locked as by a SELECT. 42501 where the caller lacks a privilege.
 */
bool scan_possible(const TableQuery *query, List **tables);

/* The tables, in their order, as the planner has them. With `others` foreign tables are left out, whose rows are read
 * elsewhere. Returns a sentence where it reads something else, or otherwise; or NULL. */
const char *scan_find_tables(const TableQuery *query, bool others, List **tables);

/* A scan of these tables that has begun: it has read up to the first row that takes part. */
struct DirectScan;
DirectScan *scan_begin(const TableQuery *query, List *tables, MemoryContext context);

/* About how many rows there are. */
int64 scan_expected_rows(const DirectScan *scan);

/* No points, but of the kind of its rows. d is 0 where there are none. */
PgkmPoints scan_no_points(const DirectScan *scan);

/* Ends it: all rows, in the context given at the beginning, as of table_select. *workers: how many helped. What rows
 * and fit are expected to take in memory is promised first (pgkm_memory_expect). What the fit would need if the rows
 * were streamed, if it could be that, is for the error that they take too much memory. */
TableRows *scan_finish(DirectScan *scan, double expected_bytes, uint64 streamed_bytes, int32 *workers);

/* Or the rows, without their origins, come in parts of about so many, again and again, all under one snapshot. That is
 * the active one, which has to be the same at each call. */
void scan_stream(DirectScan *scan, int64 most);

/* The next part, in `context`; NULL, once, behind the last. *workers: how many helped. */
TableRows *scan_next(DirectScan *scan, MemoryContext context, int32 *workers);

/* Ends it. */
void scan_end(DirectScan *scan);

#endif
