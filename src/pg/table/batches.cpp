/*
 * batches.cpp - writes labels in batches, each a transaction of its own, while others write the table.
 *
 * A batch finds rows whose label differs from what the model says of them, locks those that nobody else holds, and
 * updates them: it waits for nobody while it holds rows, so writers wait for a batch at most, and no deadlock arises.
 *
 * A walk by ranges of blocks, up to the size of the tables when it begins, writes nearly all labels. It may miss rows:
 * those that somebody holds, and those that an UPDATE moves behind the walk, or beyond its end. So a look at the whole
 * tables follows, in one statement, whose snapshot has each row once wherever it lies, and which goes on to the newest
 * version of a row before it locks it. Where that finds less than a batch, and locks and writes all of it, no row was
 * missed: every row of the snapshot has had the model's label after the walk began. Else another walk follows, but not
 * for ever: others may change rows all the time.
 *
 * Two calls for one table take turns, else labels of two models would stand side by side. Their lock is the session's,
 * and no other statement takes it; an ERROR lets it go, as it does with locks of VACUUM.
 */
#include "pg/table/update.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#define WALKS 20

/* The rows that were found: their ctids alone do not tell rows of several tables apart. */
#define FOUND "ctid OPERATOR(pg_catalog.=) ANY ($4)"
#define FOUND_IN_TABLES                                                                                        \
    FOUND " AND (tableoid, ctid) OPERATOR(pg_catalog.=) ANY (SELECT * FROM ROWS FROM (pg_catalog.unnest($5), " \
          "pg_catalog.unnest($4)) AS found)"
#define SKIP_LOCKED " SKIP LOCKED"

/* One that is written in batches. */
struct Batches {
    Oid id;
    int64 limit;           /* rows of a batch */
    MemoryContext context; /* of one batch */
    TableRelation relation;
    LabelUpdate update;
    const char *found; /* the condition that a row was found */
    int64 written;
};

void table_next_transaction(void)
{
    SPI_commit();
    CHECK_FOR_INTERRUPTS();
}

/* A batch looks everything up anew, as all may change in between. READ COMMITTED whatever the default, as it goes on
 * with rows that others have changed. */
static void begin_batch(Batches *batches)
{
    set_config_option("transaction_isolation", "read committed", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
                      false);
    MemoryContextReset(batches->context);
    MemoryContextSwitchTo(batches->context);
    PushActiveSnapshot(GetTransactionSnapshot());
    table_relation_find(&batches->relation, batches->id, TABLE_UPDATE, true);
    batches->found = batches->relation.has_rows_of_others ? FOUND_IN_TABLES : FOUND;
}

static void end_batch(const Batches *batches)
{
    const MemoryContext caller = MemoryContextGetParent(batches->context);

    PopActiveSnapshot();
    MemoryContextSwitchTo(caller);
    table_next_transaction();
}

/* Locks rows, at most so many, whose label differs. With `differ` it says how many differ, of at most as many. Where
 * there are none, those that were found before stay. */
static int64 find(Batches *batches, const char *which, int64 most, const char *lock, int64 *differ = NULL)
{
    const MemoryContext context = CurrentMemoryContext;
    LabelUpdate *const update = &batches->update;
    const char *const table = batches->relation.sql_name;
    const char *const count =
        differ == NULL
            ? "1"
            : psprintf("(SELECT pg_catalog.count(*) FROM (SELECT FROM %s WHERE $2 LIMIT " INT64_FORMAT ") AS rows)",
                       table, most);
    bool isnull;

    SPI_connect();

    /* Nothing is locked in vain: the count comes first. */
    const char *const sql =
        psprintf("WITH differ AS MATERIALIZED (SELECT %s AS count) SELECT pg_catalog.count(*), "
                 "pg_catalog.array_agg(place), pg_catalog.array_agg(part), (SELECT count FROM differ) FROM (SELECT "
                 "ctid AS place, tableoid AS part FROM %s WHERE %s AND $2 AND (SELECT count FROM differ) "
                 "OPERATOR(pg_catalog.>) 0 LIMIT " INT64_FORMAT " FOR NO KEY UPDATE%s) AS rows",
                 count, table, which, most, lock);
    const int code = table_execute_labels(update, sql);

    if (code != SPI_OK_SELECT || SPI_processed != 1)
        elog(ERROR, "\"%s\" failed: %s", sql, SPI_result_code_string(code));

    const HeapTuple row = SPI_tuptable->vals[0];
    const TupleDesc tupdesc = SPI_tuptable->tupdesc;
    const int64 found = DatumGetInt64(SPI_getbinval(row, tupdesc, 1, &isnull));

    if (differ != NULL)
        *differ = DatumGetInt64(SPI_getbinval(row, tupdesc, 4, &isnull));
    if (found > 0) {
        MemoryContextSwitchTo(context);
        update->ctids = PointerGetDatum(DatumGetArrayTypePCopy(SPI_getbinval(row, tupdesc, 2, &isnull)));
        update->tables = PointerGetDatum(DatumGetArrayTypePCopy(SPI_getbinval(row, tupdesc, 3, &isnull)));
    }
    SPI_finish();
    return found;
}

/* Writes the rows that were found, and are locked, in a part of the tables that needs no whole scan of them. A BEFORE
 * trigger may keep rows from being updated. */
static int64 write(Batches *batches, const char *which)
{
    const char *const sql = psprintf("UPDATE %s SET %s = $1 WHERE %s AND %s", batches->relation.sql_name,
                                     quote_identifier(batches->update.column), which, batches->found);

    SPI_connect();

    const int code = table_execute_labels(&batches->update, sql);

    table_check_written(&batches->relation, sql, code);

    const int64 written = (int64)SPI_processed;

    SPI_finish();
    batches->written += written;
    return written;
}

/* How many blocks the largest of the tables has; how many one range has, so that it holds about a batch; and in how
 * many batches it is written at most. */
static BlockNumber measure(const Batches *batches, int64 rows, BlockNumber *width, int64 *tries)
{
    const List *const tables = find_all_inheritors(batches->id, AccessShareLock, NULL);
    BlockNumber most = 0;
    double total = 1;
    ListCell *cell;

    foreach (cell, tables) {
        const Relation table = table_open(lfirst_oid(cell), NoLock);

        if (RELKIND_HAS_STORAGE(table->rd_rel->relkind)) {
            const BlockNumber blocks = RelationGetNumberOfBlocks(table);

            most = Max(most, blocks);
            total += blocks;
        }
        table_close(table, NoLock);
    }

    const double blocks = (double)batches->limit * total / (double)Max(rows, 1) / (double)list_length(tables);

    *width = (BlockNumber)Max(1.0, Min(blocks, (double)Max(most, 1)));
    *tries = (int64)*width * list_length(tables) * MaxHeapTuplesPerPage / batches->limit + 1;
    return most;
}

/* Once through the tables. A range is begun anew while it has a whole batch, but not for ever: somebody else may write
 * other labels all the time. */
static void walk(Batches *batches, int64 rows)
{
    BlockNumber width;
    int64 tries;

    begin_batch(batches);

    const BlockNumber end = measure(batches, rows, &width, &tries);

    end_batch(batches);
    for (uint64 first = 0; first < end; first += width) {
        bool more = true;

        for (int64 i = 0; more && i < tries; ++i) {
            begin_batch(batches);

            const char *const range =
                psprintf("ctid OPERATOR(pg_catalog.>=) '(" UINT64_FORMAT ",0)'::pg_catalog.tid AND "
                         "ctid OPERATOR(pg_catalog.<) '(" UINT64_FORMAT ",0)'::pg_catalog.tid",
                         first, Min(first + width, (uint64)InvalidBlockNumber));
            const int64 locked = find(batches, range, batches->limit, SKIP_LOCKED);

            more = locked > 0 && write(batches, range) > 0 && locked == batches->limit;
            end_batch(batches);
        }
    }
}

/* Looks for rows in all of the tables and writes a batch of them. Returns whether no row was missed, and how many
 * triggers kept from being written. Where others hold all that differ, it waits for one, and holds nothing meanwhile.
 */
static bool look(Batches *batches, int64 *kept)
{
    int64 differ;
    int64 written = 0;

    begin_batch(batches);

    int64 locked = find(batches, "true", batches->limit, SKIP_LOCKED, &differ);
    bool is_done = locked == differ && differ < batches->limit;

    if (differ > 0 && locked == 0) {
        locked = find(batches, "true", 1, "");
        is_done = locked == 0; /* others have written them, or row security lets nobody do so */
    }
    if (locked > 0)
        written = write(batches, "true");
    *kept = locked - written;
    end_batch(batches);
    return is_done || (locked > 0 && written == 0);
}

int64 table_write_in_batches(Oid relation, const char *column, const LabelExpression *by_value, int64 rows,
                             int32 batch_rows)
{
    Batches batches = {};
    LOCKTAG turn;
    bool is_done = false;
    int64 kept = 0;

    batches.id = relation;
    batches.limit = batch_rows;
    batches.context = AllocSetContextCreate(CurrentMemoryContext, "kmeans batch", ALLOCSET_DEFAULT_SIZES);
    batches.update = {&batches.relation, column, InvalidOid, true, by_value, NULL, 0, 0};
    SET_LOCKTAG_OBJECT(turn, MyDatabaseId, RelationRelationId, relation, 0);
    LockAcquire(&turn, ExclusiveLock, true, false);
    for (int i = 0; !is_done && i < WALKS; ++i) {
        walk(&batches, rows);
        is_done = look(&batches, &kept);
    }
    LockRelease(&turn, ExclusiveLock, true);
    if (!is_done || kept > 0)
        ereport(WARNING, (errmsg("not all labels of \"%s\" were written", batches.relation.name),
                          errdetail("A trigger skipped the UPDATE of rows, or others changed rows faster than their "
                                    "labels were written. Labels of %lld rows were written.",
                                    (long long)batches.written)));
    return batches.written;
}
