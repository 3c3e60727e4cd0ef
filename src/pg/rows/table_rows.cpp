/*
 * table_rows.cpp - growing arrays of where rows came from.
 */
#include "pg/rows/table_rows.h"

#include <algorithm>

#include "pg/run/memory_account.h"

extern "C" {
#include "miscadmin.h"
}

static void release(void *argument)
{
    TableRows *const rows = (TableRows *)argument;

    pgkm_memory_hold(&rows->reserved, -(int64)rows->reserved);
}

TableRows *table_rows_create(MemoryContext context, TableWants wants)
{
    TableRows *const rows = (TableRows *)MemoryContextAllocZero(context, sizeof(TableRows));

    rows->context = context;
    rows->wants = wants;
    rows->on_reset.func = release;
    rows->on_reset.arg = rows;
    MemoryContextRegisterResetCallback(context, &rows->on_reset);
    return rows;
}

static void resize(TableRows *rows, int64 capacity)
{
    pgkm_memory_hold(&rows->reserved, (capacity - rows->capacity) * (int64)table_origin_bytes(&rows->wants),
                     rows->estimate);
    if (rows->wants.ctid)
        rows->ctids = (ItemPointerData *)pgkm_resize(rows->context, rows->ctids, capacity, sizeof(ItemPointerData));
    if (rows->wants.label)
        rows->labels = (int64 *)pgkm_resize(rows->context, rows->labels, capacity, sizeof(int64));
    rows->capacity = capacity;
}

static void resize_skipped(TableRows *rows, int64 capacity)
{
    pgkm_memory_hold(&rows->reserved, (capacity - rows->skipped_capacity) * (int64)sizeof(int64), rows->estimate);
    rows->skipped = (int64 *)pgkm_resize(rows->context, rows->skipped, capacity, sizeof(int64));
    rows->skipped_capacity = capacity;
}

void table_rows_begin_table(TableRows *rows, Oid table, int64 position)
{
    rows->ranges = (TableRange *)pgkm_resize(rows->context, rows->ranges, rows->n_ranges + 1, sizeof(TableRange));
    rows->ranges[rows->n_ranges++] = {table, position};
}

void table_rows_note(TableRows *rows, const TableOrigin *origin, bool used)
{
    if (unlikely(rows->n == rows->capacity))
        resize(rows, pgkm_next_capacity(rows->capacity, rows->n + 1, table_origin_bytes(&rows->wants)));
    if (rows->n_ranges == 0 || rows->ranges[rows->n_ranges - 1].table != origin->table)
        table_rows_begin_table(rows, origin->table, rows->n);
    if (rows->wants.ctid)
        rows->ctids[rows->n] = origin->ctid;
    if (rows->wants.label)
        rows->labels[rows->n] = origin->label;
    if (used)
        return;
    if (rows->n_skipped == rows->skipped_capacity)
        resize_skipped(rows, pgkm_next_capacity(rows->skipped_capacity, rows->n_skipped + 1, sizeof(int64)));
    rows->skipped[rows->n_skipped] = rows->n;
}

void table_rows_open_levels(TableRows *rows, const LevelsFound *found, bool weighted)
{
    const Size bytes = found->count * sizeof(int32);

    rows->widths = (int32 *)memcpy(MemoryContextAlloc(rows->context, bytes), found->widths, bytes);
    rows->levels = found->levels;
    rows->used = pgkm_rows_create(rows->context, PGKM_FLOAT64, found->d, weighted);
}

/* Rows between two looks at interrupts. */
#define ROWS_AT_ONCE 4096

void table_rows_expand(TableRows *rows, const LevelsFound *found)
{
    PgkmRows *const codes = rows->used;

    table_rows_open_levels(rows, found, codes->weighted);
    pgkm_rows_make(rows->used, codes->n, false);
    for (int64 i = 0; i < codes->n; i += ROWS_AT_ONCE) {
        CHECK_FOR_INTERRUPTS();
        levels_expand(found, 0, (const double *)(codes->values + i * codes->row_bytes),
                      Min(codes->n - i, (int64)ROWS_AT_ONCE),
                      (double *)(rows->used->values + i * rows->used->row_bytes));
    }
    if (codes->weighted && codes->n > 0)
        memcpy(rows->used->weights, codes->weights, codes->n * sizeof(double));
    pgkm_rows_clear(codes);
}

void table_rows_shrink(TableRows *rows)
{
    if (rows->used != NULL)
        pgkm_rows_shrink(rows->used);
    if (rows->capacity > Max(rows->n, (int64)1))
        resize(rows, Max(rows->n, (int64)1));
    if (rows->skipped_capacity > Max(rows->n_skipped, (int64)1))
        resize_skipped(rows, Max(rows->n_skipped, (int64)1));
}

void table_rows_make(TableRows *rows, int64 n, int64 n_skipped)
{
    if (n > 0 && table_wants_any(&rows->wants))
        resize(rows, n);
    if (n_skipped > 0 && table_wants_any(&rows->wants))
        resize_skipped(rows, n_skipped);
    rows->n = n;
    rows->n_skipped = n_skipped;
}

Oid table_rows_table(const TableRows *rows, int64 position)
{
    const TableRange *const ranges = rows->ranges;
    const TableRange *const next =
        std::upper_bound(ranges, ranges + rows->n_ranges, position,
                         [](int64 place, const TableRange &range) { return place < range.begin; });

    return next[-1].table;
}

static int compare_labels(const void *a, const void *b)
{
    const int64 one = *(const int64 *)a;
    const int64 other = *(const int64 *)b;

    CHECK_FOR_INTERRUPTS();
    return (one > other) - (one < other);
}

int32 *table_rows_number_labels(TableRows *rows, int64 least, int64 **labels, int64 *count)
{
    const int64 n = table_rows_used(rows);
    TableCursor cursor;

    pgkm_memory_hold(&rows->reserved, n * (int64)(sizeof(int64) + sizeof(int32)));

    int64 *const sorted = (int64 *)pgkm_resize(rows->context, NULL, n, sizeof(int64));
    int32 *const numbers = (int32 *)pgkm_resize(rows->context, NULL, n, sizeof(int32));

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows))
        if (cursor.used >= 0)
            sorted[cursor.used] = rows->labels[cursor.position];
    qsort(sorted, n, sizeof(int64), compare_labels);
    *labels = std::lower_bound(sorted, sorted + n, least);
    *count = std::unique(*labels, sorted + n) - *labels;
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        const int64 label = rows->labels[cursor.position];

        if ((cursor.position & 0xffff) == 0)
            CHECK_FOR_INTERRUPTS();
        if (cursor.used >= 0)
            numbers[cursor.used] =
                label < least ? -1 : (int32)(std::lower_bound(*labels, *labels + *count, label) - *labels);
    }
    pfree(rows->labels);
    rows->labels = NULL;
    return numbers;
}

void table_rows_clear(TableRows *rows)
{
    void *const arrays[] = {rows->ctids, rows->labels, rows->skipped, rows->ranges};

    for (void *array : arrays)
        if (array != NULL)
            pfree(array);
    rows->ctids = NULL;
    rows->labels = NULL;
    rows->skipped = NULL;
    rows->ranges = NULL;
    rows->n = rows->n_skipped = rows->capacity = rows->skipped_capacity = rows->n_ranges = 0;
    release(rows);
    if (rows->used != NULL)
        pgkm_rows_clear(rows->used);
}
