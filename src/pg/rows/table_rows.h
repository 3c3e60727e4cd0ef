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

#include "pg/columns/levels.h"
#include "pg/rows/rows.h"

/* The label of a row that has none. */
#define TABLE_LABEL_NULL PG_INT64_MIN

/* What is known of one row beside its features. */
struct TableOrigin {
    ItemPointerData ctid;
    Oid table;   /* of the partition or child that holds it */
    int64 label; /* or TABLE_LABEL_NULL */
};

/* What of it is kept. The table is kept with any of it. */
struct TableWants {
    bool ctid;
    bool label;
};

static inline bool table_wants_any(const TableWants *wants)
{
    return wants->ctid || wants->label;
}

/* Bytes that it takes, of one row. */
static inline Size table_origin_bytes(const TableWants *wants)
{
    return (wants->ctid ? sizeof(ItemPointerData) : 0) + (wants->label ? sizeof(int64) : 0);
}

/* The rows of one table, which lie together, up to where the next one's begin. */
struct TableRange {
    Oid table;
    int64 begin; /* position of the first row */
};

struct TableRows {
    MemoryContextCallback on_reset;
    MemoryContext context;
    TableWants wants;
    PgkmRows *used;      /* the rows that are clustered; NULL when there are none */
    int32 *widths;       /* how many values of them each feature column has; NULL when there are none */
    double *fills;       /* of each feature the value in the place of NULLs; NULL where there is none */
    const Datum *levels; /* of each feature column that is a category: text[] (columns/levels.h); NULL: none is */
    int64 n;             /* all rows */
    int64 n_skipped;     /* of them those that are not in `used` */
    /* Where something of the origins is wanted: */
    ItemPointerData *ctids; /* n, if wanted */
    int64 *labels;          /* n, if wanted */
    int64 capacity;
    int64 *skipped; /* positions, ascending */
    int64 skipped_capacity;
    TableRange *ranges;
    int n_ranges;
    uint64 reserved; /* bytes of the arrays above, counted against the limit */
    uint64 estimate; /* bytes that they and `used` will take, for the error; 0: not known */
};

/* No rows yet, in `context`. */
TableRows *table_rows_create(MemoryContext context, TableWants wants);

/* Keeps what is wanted of the origin of the next row. */
void table_rows_note(TableRows *rows, const TableOrigin *origin, bool used);

/* Appends a row, with used = true after adding it to `used`. */
static inline void table_rows_add(TableRows *rows, const TableOrigin *origin, bool used)
{
    if (table_wants_any(&rows->wants))
        table_rows_note(rows, origin, used);
    rows->n_skipped += !used;
    ++rows->n;
}

/* Makes empty rows so many, whose wanted arrays the caller writes; `used` and the ranges are made by themselves. */
void table_rows_make(TableRows *rows, int64 n, int64 n_skipped);

/* From this position on rows are of that table. */
void table_rows_begin_table(TableRows *rows, Oid table, int64 position);

/* Makes `used` rows with the features of those levels. */
void table_rows_open_levels(TableRows *rows, const LevelsFound *found, bool weighted);

/* Writes rows of codes of one process as such rows. */
void table_rows_expand(TableRows *rows, const LevelsFound *found);

/* Gives back what rows leave empty, when no more are to come. */
void table_rows_shrink(TableRows *rows);

/* The table that holds row `position`. */
Oid table_rows_table(const TableRows *rows, int64 position);

/* Number of rows that are clustered. */
static inline int64 table_rows_used(const TableRows *rows)
{
    return rows->n - rows->n_skipped;
}

/* Numbers the labels of used rows, of which there are some: returns their numbers from 0, -1 of labels below `least`;
 * and the labels, ascending. Both are counted with the rows, whose `labels` go. */
int32 *table_rows_number_labels(TableRows *rows, int64 least, int64 **labels, int64 *count);

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
