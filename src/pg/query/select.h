/*
 * select.h - rows of any relation through the executor: one SELECT as the current user.
 */
#ifndef PGKM_PG_QUERY_SELECT_H
#define PGKM_PG_QUERY_SELECT_H

#include "pg/query/query.h"
#include "pg/rows/table_rows.h"

/*
 * All rows of the query, in `context`. 22004, 22003, 22023 and 2202E for bad values, which name the column
 * or element and the row's ctid; 54000 when pg_kmeans.memory_limit would be passed; and what the SELECT
 * raises.
 */
TableRows *table_select(const TableQuery *query, MemoryContext context);

/* Sets a setting until the current nest level ends (NewGUCNestLevel, AtEOXact_GUC). */
void table_set_for_now(const char *name, const char *value);

#endif
