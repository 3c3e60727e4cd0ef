/*
 * label_lookup.cpp - finds the new label of a row by its place, or keeps the one that was found by its value.
 */
#include "pg/table/label_lookup.h"

extern "C" {
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(pgkm_label_changes);
PG_FUNCTION_INFO_V1(pgkm_new_label);
PG_FUNCTION_INFO_V1(pgkm_label_by_value_changes);
PG_FUNCTION_INFO_V1(pgkm_new_label_by_value);
}

static LabelLookup *current = NULL;
static LabelOfRow *current_row = NULL;

/* How many of the rows before `position` take no part in the fit, and whether that row does not. */
static int64 count_skipped(const TableRows *rows, int64 position, bool *skipped)
{
    int64 low = 0;
    int64 high = rows->n_skipped;

    while (low < high) {
        const int64 middle = low + (high - low) / 2;

        if (rows->skipped[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    *skipped = low < rows->n_skipped && rows->skipped[low] == position;
    return low;
}

static int32 label_at(const LabelLookup *lookup, int64 position)
{
    bool skipped;
    const int64 before = count_skipped(lookup->rows, position, &skipped);

    return skipped ? TABLE_LABEL_NULL : lookup->labels[position - before];
}

/* Without an old label column all of its values are NULL. */
static int32 old_label_at(const TableRows *rows, int64 position)
{
    return rows->wants.label ? rows->labels[position] : TABLE_LABEL_NULL;
}

static bool any_change(const TableRows *rows, const int32 *labels)
{
    TableCursor cursor;

    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        if (old_label_at(rows, cursor.position) != (cursor.used < 0 ? TABLE_LABEL_NULL : labels[cursor.used]))
            return true;
        if ((cursor.position & 0xffff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
    return false;
}

bool label_lookup_start(LabelLookup *lookup, const TableRows *rows, const int32 *labels)
{
    if (!any_change(rows, labels))
        return false;
    memset(lookup, 0, sizeof *lookup);
    lookup->rows = rows;
    lookup->labels = labels;
    lookup->ranges = table_rows_ranges(rows, &lookup->n_ranges);
    lookup->outer = current;
    current = lookup;
    return true;
}

void label_lookup_end(LabelLookup *lookup)
{
    current = lookup->outer;
}

/* Three numbers of 16 bits; the server's own comparison is a call. */
static inline bool same_place(const ItemPointerData *a, const ItemPointerData *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static inline bool is_at(const TableRows *rows, int64 position, Oid table, const ItemPointerData *ctid)
{
    return position < rows->n && same_place(&rows->ctids[position], ctid) &&
           (!rows->wants.table || rows->tables[position] == table);
}

/* Searches the rows of its table, which are in the order of their ctids. */
static int64 search(const LabelLookup *lookup, Oid table, const ItemPointerData *ctid)
{
    const TableRows *const rows = lookup->rows;

    for (int i = 0; i < lookup->n_ranges; ++i) {
        const TableRange *const range = &lookup->ranges[i];
        int64 low = range->begin;
        int64 high = range->end;

        if (rows->wants.table && range->table != table)
            continue;
        while (low < high) {
            const int64 middle = low + (high - low) / 2;

            if (ItemPointerCompare(&rows->ctids[middle], (ItemPointer)ctid) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < range->end && is_at(rows, low, table, ctid))
            return low;
    }
    return -1;
}

static void check_called_by_us(const void *current_update)
{
    if (current_update == NULL)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("this function can only be called by kmeans_cluster")));
}

/* The row's position, or -1: it was not read. */
static int64 find(FunctionCallInfo fcinfo)
{
    const Oid table = PG_GETARG_OID(0);
    const ItemPointerData *const ctid = (const ItemPointerData *)PG_GETARG_POINTER(1);
    int64 position;

    check_called_by_us(current);
    position = current->hint;
    if (!is_at(current->rows, position, table, ctid) && !is_at(current->rows, ++position, table, ctid))
        position = search(current, table, ctid);
    if (position >= 0)
        current->hint = position;
    return position;
}

/* pgkm_label_changes(tableoid, ctid) -> boolean: whether kmeans_cluster gives the row another label. */
Datum pgkm_label_changes(PG_FUNCTION_ARGS)
{
    const int64 position = find(fcinfo);
    const bool changes = position >= 0 && old_label_at(current->rows, position) != label_at(current, position);

    current->changed += changes;
    PG_RETURN_BOOL(changes);
}

/* pgkm_new_label(tableoid, ctid) -> integer: the label that kmeans_cluster gives the row. */
Datum pgkm_new_label(PG_FUNCTION_ARGS)
{
    const int64 position = find(fcinfo);
    const int32 label = position < 0 ? TABLE_LABEL_NULL : label_at(current, position);

    if (label == TABLE_LABEL_NULL)
        PG_RETURN_NULL();
    PG_RETURN_INT32(label);
}

void label_of_row_start(LabelOfRow *row)
{
    *row = {{0, true}, 0, current_row};
    current_row = row;
}

void label_of_row_end(LabelOfRow *row)
{
    current_row = row->outer;
}

/* pgkm_label_changes(new_label integer, old_label bigint) -> boolean: whether they differ. */
Datum pgkm_label_by_value_changes(PG_FUNCTION_ARGS)
{
    check_called_by_us(current_row);
    current_row->label = fcinfo->args[0];

    const bool changes = PG_ARGISNULL(0) || PG_ARGISNULL(1) ? PG_ARGISNULL(0) != PG_ARGISNULL(1)
                                                            : PG_GETARG_INT32(0) != PG_GETARG_INT64(1);

    current_row->changed += changes;
    PG_RETURN_BOOL(changes);
}

/* pgkm_new_label() -> integer: the new label that pgkm_label_changes() had last, for the same row. */
Datum pgkm_new_label_by_value(PG_FUNCTION_ARGS)
{
    check_called_by_us(current_row);
    if (current_row->label.isnull)
        PG_RETURN_NULL();
    return current_row->label.value;
}
