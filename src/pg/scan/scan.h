/*
 * scan.h - rows straight from the pages of a heap, without the executor in between.
 *
 * The fast one of the two roads behind table_read(); it returns the same rows in the same
 * order, and raises the same errors about them, as the SELECT of the other one. A large
 * table is read by parallel workers together; how many they are never shows in the result.
 */
#ifndef PGKM_PG_SCAN_H
#define PGKM_PG_SCAN_H

#include "pg/table/reader.h"

extern "C" {
#include "nodes/pg_list.h"
}

/* pg_kmeans.scan */
enum ScanChoice { SCAN_AUTO, SCAN_DIRECT, SCAN_EXECUTOR };

/*
 * Whether the query can be read directly. False where the executor does something that a
 * walk over pages does not: for views, foreign tables, other table access methods, row
 * security, serializable transactions, virtual columns; and where the caller lacks a
 * privilege, so that the executor raises that. With pg_kmeans.scan = direct, 0A000 with the
 * reason instead of false. Locks the partitions or children as a SELECT does, and lists in *leaves
 * the tables that hold the rows.
 */
bool scan_possible(const TableQuery *query, List **leaves);

/* The workers of a parallel scan, and what its leader read by itself. */
struct ScanCrew;

/* Waits for the workers' end, and ends the parallel mode that the transaction is in since the scan. */
void scan_dismiss(ScanCrew *crew);

/* As table_read, for a query that scan_possible has found possible with these leaves. *workers: how many helped. */
TableRows *scan_read(const TableQuery *query, List *leaves, MemoryContext context, int32 *workers);

#endif
