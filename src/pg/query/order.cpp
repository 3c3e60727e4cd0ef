/*
 * order.cpp - sorts rows by table and ctid, where they did not come so.
 *
 * A sequential scan delivers them so. Other plans may not: an index scan that a row security policy allows,
 * or the scan of another extension. Then the rows are sorted afterwards, so that no result depends on the
 * plan.
 */
#include "pg/query/order.h"

#include "pg/run/memory_account.h"

extern "C" {
#include "miscadmin.h"
#include "utils/memutils.h"
}

struct Place {
    uint64 ctid;    /* block and offset as one number */
    int64 position; /* among all rows */
    int64 used;     /* among the used rows, or -1 */
    int table;      /* order of appearance */
};

void table_order_start(TableOrder *order)
{
    order->n_tables = 0;
    order->capacity = 8;
    order->tables = (Oid *)palloc(order->capacity * sizeof(Oid));
    order->broken = false;
}

static int index_of(const TableOrder *order, Oid table)
{
    /* From the end: rows mostly belong to the table that was met last. */
    int i = order->n_tables - 1;

    while (i >= 0 && order->tables[i] != table)
        --i;
    return i;
}

void table_order_watch(TableOrder *order, const TableOrigin *origin)
{
    const int index = index_of(order, origin->table);

    if (index < 0) {
        if (order->n_tables == order->capacity) {
            order->capacity *= 2;
            order->tables = (Oid *)repalloc(order->tables, order->capacity * sizeof(Oid));
        }
        order->tables[order->n_tables++] = origin->table;
    } else if (index != order->n_tables - 1 ||
               ItemPointerCompare((ItemPointer)&order->last, (ItemPointer)&origin->ctid) >= 0) {
        order->broken = true;
    }
    order->last = origin->ctid;
}

static int compare_places(const void *left, const void *right)
{
    const Place *a = (const Place *)left;
    const Place *b = (const Place *)right;

    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    return a->ctid < b->ctid ? -1 : a->ctid > b->ctid ? 1 : 0;
}

static Place *sorted_places(const TableOrder *order, const TableRows *rows)
{
    Place *places = (Place *)MemoryContextAllocHuge(rows->context, rows->n * sizeof(Place));
    TableCursor cursor;

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        const TableOrigin origin = table_rows_origin(rows, cursor.position);
        Place *const place = &places[cursor.position];

        place->ctid = (uint64)ItemPointerGetBlockNumberNoCheck(&origin.ctid) << 16 |
                      ItemPointerGetOffsetNumberNoCheck(&origin.ctid);
        place->position = cursor.position;
        place->used = cursor.used;
        place->table = index_of(order, origin.table);
    }
    CHECK_FOR_INTERRUPTS();
    qsort(places, rows->n, sizeof(Place), compare_places);
    return places;
}

TableRows *table_order_restore(const TableOrder *order, TableRows *rows)
{
    const uint64 bytes = (uint64)rows->n * sizeof(Place);
    TableRows *const sorted = table_rows_create(rows->context, rows->wants);
    const PgkmRows *from = rows->used;

    sorted->widths = rows->widths;
    /* Counted on the new rows, which release it if an error comes in between. */
    pgkm_memory_reserve(bytes);
    sorted->reserved += bytes;
    if (from != NULL) {
        sorted->used = pgkm_rows_create(rows->context, from->element, from->d, from->weighted);
        pgkm_rows_grow(sorted->used, from->n);
    }

    Place *places = sorted_places(order, rows);

    for (int64 i = 0; i < rows->n; ++i) {
        const Place *const place = &places[i];
        const TableOrigin origin = table_rows_origin(rows, place->position);

        if (place->used >= 0)
            pgkm_rows_append(sorted->used, from->values + place->used * from->row_bytes,
                             from->weighted ? (const char *)(from->weights + place->used) : NULL, 1);
        table_rows_add(sorted, &origin, place->used >= 0);
        if ((i & 0xffff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
    pfree(places);
    pgkm_memory_release(bytes);
    sorted->reserved -= bytes;
    table_rows_clear(rows);
    return sorted;
}
