/*
 * reader.h - reading the rows of a table into memory.
 *
 * The one place that knows how rows come out of a relation. They are what a SELECT by the
 * current user would see, in the order of pg/query/order.h.
 */
#ifndef PGKM_PG_TABLE_READER_H
#define PGKM_PG_TABLE_READER_H

#include "pg/progress.h"
#include "pg/query/relation.h"
#include "pg/rows/table_rows.h"

struct TableQuery {
    const TableRelation *relation;
    const TableColumn   *features;
    int                  n_features;
    const TableColumn   *weight;       /* a number, or NULL */
    const char          *label;        /* an integer column to read along, or NULL */
    bool                 need_ctid;    /* else it is read only where the caller may */
    bool                 need_direction; /* a row of zeros, which has none, is an error */
    bool                 new_snapshot; /* see what was committed until now, not what the query sees */
    bool                 keep_crew;    /* the caller will call table_read_end */
};

/* Whether the caller may read where the relation's rows are. */
bool table_may_read_ctid(const TableRelation *relation);

/*
 * Reads all rows. A row takes part in the fit unless its features are NULL (its array; all
 * of its columns) or its weight is NULL or 0. 22004, 22003, 22023, 2202E for bad values,
 * naming column or element and the row's ctid; 54000 when pg_kmeans.memory_limit would be
 * passed; and what the SELECT raises. All memory lies in `context`. *report learns of the
 * road taken and its workers.
 */
TableRows *table_read(const TableQuery *query, MemoryContext context, PgkmScanReport *report);

/* After a table_read with keep_crew = true, once, before the transaction goes on with anything else:
 * waits for the processes that have helped. To start work on the rows first saves that time. */
void table_read_end(TableRows *rows);

#endif
