/*
 * table_update.cpp - locking a table and writing labels into it, all through SPI as the
 * caller, so that privileges, row security, triggers and constraints hold.
 */
#include "pg/table_update.h"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
}

/* Changed rows that go into one UPDATE. */
#define BATCH_ROWS 131072
/* With partitions each UPDATE may have to scan all of them. */
#define BATCH_ROWS_PARTITIONED 1048576

static void run_utility(const char *sql)
{
    const int code = SPI_execute(sql, false, 0);

    if (code != SPI_OK_UTILITY)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
}

void table_lock_for_update(TableRelation *relation, const char *name)
{
    /* Without a lock of our own before: two sessions that both hold one and both want the
     * stronger one for the new column would wait for each other. */
    table_relation_find(relation, name, TABLE_UPDATE, false);
    const char *locked = relation->sql_name;

    SPI_connect();
    run_utility(psprintf("LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", locked));
    SPI_finish();
    /* The name that was locked, for the relation may have been replaced before the lock. */
    table_relation_find(relation, locked, TABLE_UPDATE, false);
}

void table_ensure_label(const TableRelation *relation, const char *label)
{
    const Oid type = table_column_type(relation, label);

    if (!OidIsValid(type)) {
        SPI_connect();
        run_utility(psprintf("ALTER TABLE %s ADD COLUMN %s pg_catalog.int4", relation->sql_name,
                             quote_identifier(label)));
        SPI_finish();
    } else if (type != INT4OID && type != INT2OID && type != INT8OID) {
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("label column \"%s\" of relation \"%s\" has type %s, not an integer type", label,
                               relation->name, format_type_be(type))));
    }
}

/* One UPDATE's arguments. */
struct Batch {
    int64            capacity;
    int64            n;
    ItemPointerData *ctids;
    Datum           *ctid_values;
    Datum           *tables;
    Datum           *labels;
    bool            *nulls; /* of labels */
};

static void make_batch(Batch *batch, int64 capacity)
{
    batch->capacity = capacity;
    batch->n = 0;
    batch->ctids = (ItemPointerData *) palloc(capacity * sizeof(ItemPointerData));
    batch->ctid_values = (Datum *) palloc(capacity * sizeof(Datum));
    batch->tables = (Datum *) palloc(capacity * sizeof(Datum));
    batch->labels = (Datum *) palloc(capacity * sizeof(Datum));
    batch->nulls = (bool *) palloc(capacity * sizeof(bool));
    for (int64 i = 0; i < capacity; ++i)
        batch->ctid_values[i] = PointerGetDatum(&batch->ctids[i]);
}

static void add_change(Batch *batch, const TableOrigin *origin, int32 label)
{
    batch->ctids[batch->n] = origin->ctid;
    batch->tables[batch->n] = ObjectIdGetDatum(origin->table);
    batch->labels[batch->n] = Int32GetDatum(label);
    batch->nulls[batch->n] = label == TABLE_LABEL_NULL;
    ++batch->n;
}

/* The operators are named in full: the search path is the caller's. */
static char *build_update(const TableRelation *relation, const char *label)
{
    StringInfoData sql;

    initStringInfo(&sql);
    appendStringInfo(&sql,
                     "UPDATE %s AS kmeans_table SET %s = kmeans_new.label "
                     "FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3)) "
                     "AS kmeans_new (place, label, part) "
                     "WHERE kmeans_table.ctid OPERATOR(pg_catalog.=) kmeans_new.place",
                     relation->sql_name, quote_identifier(label));
    if (relation->has_rows_of_others)
        appendStringInfoString(&sql, " AND kmeans_table.tableoid OPERATOR(pg_catalog.=) kmeans_new.part");
    return sql.data;
}

static void run_update(const char *sql, const Batch *batch)
{
    int   count = (int) batch->n;
    int   lower = 1;
    Oid   types[3] = {TIDARRAYOID, INT4ARRAYOID, OIDARRAYOID};
    Datum values[3];

    if (batch->n == 0)
        return;
    values[0] = PointerGetDatum(
        construct_array(batch->ctid_values, count, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT));
    values[1] = PointerGetDatum(construct_md_array(batch->labels, batch->nulls, 1, &count, &lower, INT4OID,
                                                   sizeof(int32), true, TYPALIGN_INT));
    values[2] = PointerGetDatum(construct_array(batch->tables, count, OIDOID, sizeof(Oid), true, TYPALIGN_INT));

    const int code = SPI_execute_with_args(sql, 3, types, values, NULL, false, 0);

    if (code != SPI_OK_UPDATE)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));
}

/* Fetching by ctid beats a scan of the table per batch; the planner cannot know that there
 * are more batches to come. */
static void prefer_tid_scan(void)
{
    static const char *const others[] = {"enable_hashjoin", "enable_mergejoin"};

    for (const char *name : others)
        (void) set_config_option(name, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    (void) set_config_option("enable_tidscan", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* Sends the batch off, in a context that is emptied after each. */
static void flush(const char *sql, Batch *batch, MemoryContext scratch, bool by_tid)
{
    MemoryContext caller = MemoryContextSwitchTo(scratch);
    const int     nest_level = NewGUCNestLevel();

    if (by_tid)
        prefer_tid_scan();
    run_update(sql, batch);
    AtEOXact_GUC(false, nest_level);
    batch->n = 0;
    MemoryContextSwitchTo(caller);
    MemoryContextReset(scratch);
}

void table_write_labels(const TableCall *call, const TableRows *rows, const int32 *labels, const char *label)
{
    const bool  partitioned = call->relation.has_rows_of_others;
    const char *sql = build_update(&call->relation, label);
    TableCursor cursor;
    Batch       batch;

    SPI_connect();
    MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "kmeans update", ALLOCSET_DEFAULT_SIZES);

    make_batch(&batch, Min(rows->n, partitioned ? BATCH_ROWS_PARTITIONED : BATCH_ROWS));
    table_cursor_start(&cursor);
    while (table_cursor_next(&cursor, rows)) {
        const TableOrigin origin = table_rows_origin(rows, cursor.position);
        const int32       now = cursor.used < 0 ? TABLE_LABEL_NULL : labels[cursor.used];

        if (now == origin.label)
            continue;
        add_change(&batch, &origin, now);
        if (batch.n == batch.capacity)
            flush(sql, &batch, scratch, !partitioned);
        if ((cursor.position & 0xffff) == 0)
            CHECK_FOR_INTERRUPTS();
    }
    flush(sql, &batch, scratch, !partitioned);
    SPI_finish();
}
