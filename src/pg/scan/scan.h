/*
 * scan.h - rows straight from the pages of a heap, without the executor in between.
 *
 * The fast one of the two ways to read the rows of a query. It returns the same rows in the same order, and
 * raises the same errors about them, as the other one (pg/query/query.h). A large table is read by
 * parallel workers together; how many they are never shows in the result.
 */
#ifndef PGKM_PG_SCAN_SCAN_H
#define PGKM_PG_SCAN_SCAN_H

#include "pg/query/query.h"

extern "C" {
#include "nodes/pg_list.h"
}

/*
 * Whether the query can be read directly. False where the executor does more than walk over pages: for
 * views, foreign tables, other table access methods, row security, serializable transactions and virtual
 * columns. False also where the caller lacks a privilege, so that the executor raises that. With
 * pg_kmeans.scan = direct, or where the query must be streamed, it raises 0A000 with the reason instead.
 * When it is true, *leaves lists the tables that hold the rows, each locked as by a SELECT.
 */
bool scan_possible(const TableQuery *query, List **leaves);

/* Whether the caller may read the query's columns. */
bool scan_is_privileged(const TableQuery *query);

/* Why the executor has to read the rows of the query wherever they are, a sentence; or NULL. */
const char *scan_query_obstacle(const TableQuery *query);

/* For a query whose other rows are read elsewhere: why those of these leaves (locked, maybe none) cannot be read
 * directly, a sentence; or NULL, and scan_read may be called with them. */
const char *scan_parts_obstacle(const TableQuery *query, List *leaves);

/* For whoever hooks the server's choice of paths: `others` tells whether another extension does so, too, for this
 * relation. Such an extension may read tables in its own way, so that a direct scan is not possible. */
void scan_set_other_hooks(bool (*others)(Oid relation));

/* As table_select, for a query that scan_possible has found possible with these leaves. *workers: how many
 * helped. */
TableRows *scan_read(const TableQuery *query, List *leaves, MemoryContext context, int32 *workers);

/* The rows of a query in parts, again and again, all under one snapshot: the active one, which has to be the same at
 * each call. In the current memory context. */
struct ScanStream;
ScanStream *scan_stream_begin(const TableQuery *query, List *leaves);

/* About how many rows there are, and how many features they have; 0: there are none. */
int64 scan_stream_expected(const ScanStream *stream);
int32 scan_stream_features(const ScanStream *stream);

/* The next part of about `most` rows, in `context`; NULL, once, behind the last. The workers' end is waited for.
 * *workers: how many helped. */
TableRows *scan_stream_next(ScanStream *stream, int64 most, MemoryContext context, int32 *workers);

/* Waits for the end of the workers that have read the rows, and leaves the parallel mode that they needed;
 * nothing where there were none. Whoever set keep_crew calls it before the transaction does anything else.
 * To start work on the rows first saves the wait. */
void scan_dismiss(TableRows *rows);

#endif
