/*
 * table_rows.h - the rows of a table as a table function reads them.
 *
 * Those that take part in the fit lie in a row-major buffer. For every row, skipped ones too, the place that
 * it came from is kept, as far as the function wants it. All of it is counted against
 * pg_kmeans.memory_limit: what makes it grow raises 54000 when that passes the limit.
 */
#ifndef PGKM_PG_ROWS_TABLE_ROWS_H
#define PGKM_PG_ROWS_TABLE_ROWS_H

extern "C" {
#include "postgres.h"
#include "storage/itemptr.h"
}

#include "pg/rows/rows.h"

/* Old labels that are no cluster id. */
#define TABLE_LABEL_NULL (-1)
#define TABLE_LABEL_OTHER (-2) /* an integer that no cluster has */

/* What is known of one row beside its features. */
struct TableOrigin {
    ItemPointerData ctid;
    Oid table;   /* of the partition or child that holds it */
    int32 label; /* its old label, or one of TABLE_LABEL_* */
};

/* Which parts of TableOrigin are kept. */
struct TableWants {
    bool ctid;
    bool table;
    bool label;
};

/* Bytes that they take, of one row. */
static inline Size table_origin_bytes(const TableWants *wants)
{
    return (wants->ctid ? sizeof(ItemPointerData) : 0) + (wants->table ? sizeof(Oid) : 0) +
           (wants->label ? sizeof(int32) : 0);
}

struct TableRows {
    MemoryContextCallback on_reset;
    MemoryContext context;
    TableWants wants;
    PgkmRows *used; /* the rows that are clustered; NULL when there are none */
    int64 n;        /* all rows */
    int64 capacity;
    ItemPointerData *ctids; /* n; NULL unless wanted; likewise below */
    Oid *tables;
    int32 *labels;
    int64 *skipped; /* positions, ascending, of rows that are not in `used` */
    int64 n_skipped;
    int64 skipped_capacity;
    int32 *widths;   /* values of each column, where arrays stand beside other columns; else NULL */
    double *fills;   /* of each feature the value in the place of NULLs; NULL where there is none */
    uint64 reserved; /* bytes of the arrays above, counted against the limit */
    uint64 estimate; /* bytes that they and `used` will take, for the error; 0: not known */
};

/* No rows yet, in `context`. */
TableRows *table_rows_create(MemoryContext context, TableWants wants);

/* Appends where a row came from. Call it with used = true after adding the row to `used`. */
void table_rows_add(TableRows *rows, const TableOrigin *origin, bool used);

/* Makes empty rows so many, whose wanted arrays the caller writes; `used` is made by itself. */
void table_rows_make(TableRows *rows, int64 n, int64 n_skipped);

/* Gives back what rows leave empty, when no more are to come. */
void table_rows_shrink(TableRows *rows);

/* The origin of row `position`; parts that are not kept are zero. */
TableOrigin table_rows_origin(const TableRows *rows, int64 position);

/* Number of rows that are clustered. */
static inline int64 table_rows_used(const TableRows *rows)
{
    return rows->n - rows->n_skipped;
}

/* The rows of one table, which lie together: positions begin to end - 1. `table` is InvalidOid where all rows
 * are in one table and it is not kept. */
struct TableRange {
    Oid table;
    int64 begin;
    int64 end;
};

/* The ranges of all rows in their order; their count goes to *count. In the current memory context. */
TableRange *table_rows_ranges(const TableRows *rows, int *count);

/* Frees the memory at once. */
void table_rows_clear(TableRows *rows);

/* Walks over all rows and tells which one of `used` each is. */
struct TableCursor {
    int64 position; /* row among all; -1 before the first */
    int64 used;     /* its place in `used`, or -1 */
    int64 n_used;   /* used rows so far */
    int64 n_skipped;
};

/* Before the first row. */
static inline void table_cursor_start(TableCursor *cursor)
{
    cursor->position = -1;
    cursor->used = -1;
    cursor->n_used = 0;
    cursor->n_skipped = 0;
}

/* One row on; false behind the last. */
static inline bool table_cursor_next(TableCursor *cursor, const TableRows *rows)
{
    if (cursor->position + 1 >= rows->n) {
        cursor->position = rows->n;
        return false;
    }
    ++cursor->position;
    if (cursor->n_skipped < rows->n_skipped && rows->skipped[cursor->n_skipped] == cursor->position) {
        ++cursor->n_skipped;
        cursor->used = -1;
    } else {
        cursor->used = cursor->n_used++;
    }
    return true;
}

/* One row back; false before the first. */
static inline bool table_cursor_previous(TableCursor *cursor, const TableRows *rows)
{
    if (cursor->position >= 0 && cursor->position < rows->n) {
        if (cursor->used < 0)
            --cursor->n_skipped;
        else
            --cursor->n_used;
    }
    cursor->position = Max(cursor->position - 1, -1);
    if (cursor->position < 0)
        return false;

    const bool skipped = cursor->n_skipped > 0 && rows->skipped[cursor->n_skipped - 1] == cursor->position;

    cursor->used = skipped ? -1 : cursor->n_used - 1;
    return true;
}

#endif
