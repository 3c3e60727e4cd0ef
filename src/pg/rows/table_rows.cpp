/*
 * table_rows.cpp - growing arrays of where rows came from.
 */
#include "pg/rows/table_rows.h"

#include "pg/run/memory_account.h"

extern "C" {
#include "utils/memutils.h"
}

#define FIRST_CAPACITY 1024

static void release(void *argument)
{
    TableRows *const rows = (TableRows *)argument;

    pgkm_memory_release(rows->reserved);
    rows->reserved = 0;
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

/* Twice the last capacity, or what the limit leaves, but at least one more. */
static int64 next_capacity(int64 capacity, Size bytes_per_row)
{
    const uint64 affordable = pgkm_memory_available() / bytes_per_row;
    const int64 growth = Max(capacity, FIRST_CAPACITY);

    return capacity + Max((int64)Min(affordable, (uint64)growth), (int64)1);
}

static void *resize(MemoryContext context, void *memory, int64 count, Size size)
{
    if ((uint64)count > MaxAllocHugeSize / size)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many rows to cluster")));
    return memory == NULL ? MemoryContextAllocHuge(context, count * size) : repalloc_huge(memory, count * size);
}

static void reserve(TableRows *rows, uint64 bytes)
{
    pgkm_memory_reserve_part(bytes, rows->estimate);
    rows->reserved += bytes;
}

static void resize_origins(TableRows *rows, int64 capacity)
{
    if (rows->wants.ctid)
        rows->ctids = (ItemPointerData *)resize(rows->context, rows->ctids, capacity, sizeof(ItemPointerData));
    if (rows->wants.table)
        rows->tables = (Oid *)resize(rows->context, rows->tables, capacity, sizeof(Oid));
    if (rows->wants.label)
        rows->labels = (int32 *)resize(rows->context, rows->labels, capacity, sizeof(int32));
    rows->capacity = capacity;
}

static void resize_skipped(TableRows *rows, int64 capacity)
{
    rows->skipped = (int64 *)resize(rows->context, rows->skipped, capacity, sizeof(int64));
    rows->skipped_capacity = capacity;
}

static void grow_origins(TableRows *rows)
{
    const Size bytes_per_row = table_origin_bytes(&rows->wants);
    const int64 capacity = next_capacity(rows->capacity, Max(bytes_per_row, (Size)1));

    reserve(rows, (uint64)(capacity - rows->capacity) * bytes_per_row);
    resize_origins(rows, capacity);
}

static void add_skipped(TableRows *rows)
{
    if (rows->n_skipped == rows->skipped_capacity) {
        const int64 capacity = next_capacity(rows->skipped_capacity, sizeof(int64));

        reserve(rows, (uint64)(capacity - rows->skipped_capacity) * sizeof(int64));
        resize_skipped(rows, capacity);
    }
    rows->skipped[rows->n_skipped++] = rows->n;
}

void table_rows_add(TableRows *rows, const TableOrigin *origin, bool used)
{
    if (unlikely(rows->n == rows->capacity))
        grow_origins(rows);
    if (!used)
        add_skipped(rows);
    if (rows->wants.ctid)
        rows->ctids[rows->n] = origin->ctid;
    if (rows->wants.table)
        rows->tables[rows->n] = origin->table;
    if (rows->wants.label)
        rows->labels[rows->n] = origin->label;
    ++rows->n;
}

void table_rows_shrink(TableRows *rows)
{
    const int64 capacity = Max(rows->n, (int64)1);
    const int64 skipped = Max(rows->n_skipped, (int64)1);
    uint64 unused = 0;

    if (rows->used != NULL)
        pgkm_rows_shrink(rows->used);
    if (rows->capacity > capacity) {
        unused += (uint64)(rows->capacity - capacity) * table_origin_bytes(&rows->wants);
        resize_origins(rows, capacity);
    }
    if (rows->skipped_capacity > skipped) {
        unused += (uint64)(rows->skipped_capacity - skipped) * sizeof(int64);
        resize_skipped(rows, skipped);
    }
    rows->reserved -= unused;
    pgkm_memory_release(unused);
}

void table_rows_make(TableRows *rows, int64 n, int64 n_skipped)
{
    reserve(rows, (uint64)n * table_origin_bytes(&rows->wants) + (uint64)n_skipped * sizeof(int64));
    if (n > 0)
        resize_origins(rows, n);
    if (n_skipped > 0)
        resize_skipped(rows, n_skipped);
    rows->n = n;
    rows->n_skipped = n_skipped;
}

TableOrigin table_rows_origin(const TableRows *rows, int64 position)
{
    TableOrigin origin;

    memset(&origin, 0, sizeof origin);
    if (rows->wants.ctid)
        origin.ctid = rows->ctids[position];
    if (rows->wants.table)
        origin.table = rows->tables[position];
    if (rows->wants.label)
        origin.label = rows->labels[position];
    return origin;
}

TableRange *table_rows_ranges(const TableRows *rows, int *count)
{
    int capacity = 16;
    int n = 0;
    TableRange *ranges = (TableRange *)palloc(capacity * sizeof(TableRange));

    if (!rows->wants.table)
        ranges[n++] = {InvalidOid, 0, rows->n};
    for (int64 i = 0; rows->wants.table && i < rows->n; ++i) {
        if (i > 0 && rows->tables[i] == rows->tables[i - 1])
            continue;
        if (i > 0)
            ranges[n - 1].end = i;
        if (n == capacity) {
            capacity *= 2;
            ranges = (TableRange *)repalloc(ranges, capacity * sizeof(TableRange));
        }
        ranges[n++] = {rows->tables[i], i, rows->n};
    }
    *count = n;
    return ranges;
}

void table_rows_clear(TableRows *rows)
{
    void *const arrays[] = {rows->ctids, rows->tables, rows->labels, rows->skipped};

    for (void *array : arrays)
        if (array != NULL)
            pfree(array);
    rows->ctids = NULL;
    rows->tables = NULL;
    rows->labels = NULL;
    rows->skipped = NULL;
    rows->n = rows->n_skipped = rows->capacity = rows->skipped_capacity = 0;
    release(rows);
    if (rows->used != NULL)
        pgkm_rows_clear(rows->used);
}
