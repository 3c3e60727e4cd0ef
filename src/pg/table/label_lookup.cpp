/*
 * label_lookup.cpp - finds the new label of a row by its place, or gives back the one that was found by its value.
 */
#include "pg/table/label_lookup.h"

#include <algorithm>

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_new_label);
PG_FUNCTION_INFO_V1(pgkm_keep_label);
}

void label_lookup_start(LabelLookup *lookup, const TableRows *rows, const int32 *labels)
{
    TableCursor cursor;

    lookup->rows = rows;
    lookup->labels = labels;
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        /* Without an old label column all of its values are NULL. */
        const int64 old_label = rows->wants.label ? rows->labels[cursor.position] : TABLE_LABEL_NULL;

        lookup->changed += old_label != (cursor.used < 0 ? TABLE_LABEL_NULL : labels[cursor.used]);
        if ((cursor.position & 0xffff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
}

static bool is_at(const TableRows *rows, int64 position, Oid table, const ItemPointerData *ctid)
{
    return position < rows->n && memcmp(&rows->ctids[position], ctid, sizeof *ctid) == 0 &&
           (rows->n_ranges == 1 || table_rows_table(rows, position) == table);
}

/* Searches the rows of its table, which are in the order of their ctids. -1: the row was not read. */
static int64 search(const LabelLookup *lookup, Oid table, const ItemPointerData *ctid)
{
    const TableRows *const rows = lookup->rows;

    for (int i = 0; i < rows->n_ranges; ++i) {
        const ItemPointerData *const begin = rows->ctids + rows->ranges[i].begin;
        const ItemPointerData *const end = rows->ctids + (i + 1 < rows->n_ranges ? rows->ranges[i + 1].begin : rows->n);

        if (rows->ranges[i].table != table)
            continue;

        const ItemPointerData *const found = std::lower_bound(begin, end, *ctid, [](const auto &a, const auto &b) {
            return ItemPointerCompare((ItemPointer)&a, (ItemPointer)&b) < 0;
        });

        if (is_at(rows, found - rows->ctids, table, ctid))
            return found - rows->ctids;
    }
    return -1;
}

/* The label of a row by its place; NULL for one that takes no part. */
static int64 label_at(const TableRows *rows, const int32 *labels, int64 position)
{
    const int64 *const end = rows->skipped + rows->n_skipped;
    const int64 *const skipped = std::lower_bound((const int64 *)rows->skipped, end, position);

    return skipped < end && *skipped == position ? TABLE_LABEL_NULL : labels[position - (skipped - rows->skipped)];
}

/*
 * pgkm_new_label(lookup internal, tableoid, ctid) -> integer: the label that a row gets.
 *
 * By value it is the one that pgkm_keep_label() had for the row. A row that was not read takes no part.
 */
Datum pgkm_new_label(PG_FUNCTION_ARGS)
{
    LabelLookup *const lookup = (LabelLookup *)PG_GETARG_POINTER(0);
    const Oid table = PG_GETARG_OID(1);
    const ItemPointerData *const ctid = (const ItemPointerData *)PG_GETARG_POINTER(2);

    if (lookup->rows == NULL) {
        if (lookup->table != table || memcmp(&lookup->ctid, ctid, sizeof *ctid) != 0)
            elog(ERROR, "the label of another row was kept");
        ++lookup->changed;
        fcinfo->isnull = lookup->label.isnull;
        return lookup->label.value;
    }

    int64 position = lookup->hint;

    if (!is_at(lookup->rows, position, table, ctid) && !is_at(lookup->rows, ++position, table, ctid))
        position = search(lookup, table, ctid);
    if (position < 0)
        PG_RETURN_NULL();
    lookup->hint = position;

    const int64 label = label_at(lookup->rows, lookup->labels, position);

    if (label == TABLE_LABEL_NULL)
        PG_RETURN_NULL();
    PG_RETURN_INT32((int32)label);
}

/* pgkm_keep_label(lookup internal, tableoid, ctid, label integer) -> integer: that label, which is kept. */
Datum pgkm_keep_label(PG_FUNCTION_ARGS)
{
    LabelLookup *const lookup = PG_ARGISNULL(0) ? NULL : (LabelLookup *)PG_GETARG_POINTER(0);

    if (lookup == NULL)
        elog(ERROR, "no UPDATE of kmeans_cluster keeps labels here");
    lookup->table = PG_GETARG_OID(1);
    lookup->ctid = *(const ItemPointerData *)PG_GETARG_POINTER(2);
    lookup->label = fcinfo->args[3];
    fcinfo->isnull = lookup->label.isnull;
    return lookup->label.value;
}
