/*
 * scan.h - rows straight from the pages of a heap, without the executor in between.
 *
 * The fast one of the two roads to the rows of a query. It returns the same rows in the same order, and
 * raises the same errors about them, as the other one (pg/query/select.h). A large table is read by
 * parallel workers together; how many they are never shows in the result.
 */
#ifndef PGKM_PG_SCAN_H
#define PGKM_PG_SCAN_H

#include "pg/query/query.h"
#include "pg/rows/table_rows.h"

extern "C" {
#include "nodes/pg_list.h"
}

/*
 * Whether the query can be read directly. False where the executor does something that a
 * walk over pages does not: for views, foreign tables, other table access methods, row
 * security, serializable transactions, virtual columns; and where the caller lacks a
 * privilege, so that the executor raises that. With pg_kmeans.scan = direct, 0A000 with the
 * reason instead of false. Locks the partitions or children as a SELECT does, and lists in *leaves
 * the tables that hold the rows.
 */
bool scan_possible(const TableQuery *query, List **leaves);

/* Who takes part in the server's choice of paths tells so here. `others`: whether another extension does,
 * too; such a one may read tables in its own way. */
void scan_set_other_hooks(bool (*others)(void));

/* As table_select, for a query that scan_possible has found possible with these leaves. *workers: how many helped. */
TableRows *scan_read(const TableQuery *query, List *leaves, MemoryContext context, int32 *workers);

/* Waits for the end of the workers that have read the rows, and ends the parallel mode that the transaction
 * is in since then; nothing where there are none. After a query with keep_crew, before the transaction goes
 * on with anything else: to start work on the rows first saves that time. */
void scan_dismiss(TableRows *rows);

#endif
