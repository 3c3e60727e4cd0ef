/*
 * read.cpp - reads the rows of a plan: a process chunk by chunk, and all of them from start to end, or in parts that
 * fit into memory, pass after pass.
 *
 * A part is as many chunks of blocks as hold the rows that it may have. What a pass reads stays the same: the snapshot
 * decides, and blocks that come later hold nothing that it sees.
 */
#include "pg/scan/scan.h"

#include "pg/progress.h"
#include "pg/run/memory_account.h"
#include "pg/scan/reader.h"

extern "C" {
#include "access/relscan.h"
#include "access/table.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

/* --- one process --- */

ScanReader *scan_reader_create(const ScanPlan *plan, pg_atomic_uint32 *next_chunk, MemoryContext context)
{
    ScanReader *const reader = (ScanReader *)palloc0(sizeof(ScanReader));

    reader->plan = plan;
    reader->next_chunk = next_chunk;
    reader->rows = table_rows_create(context, plan->wants);
    reader->decoder = plan->decoder;
    table_decoder_begin(&reader->decoder, plan->given_bytes > 0 ? plan->given : NULL);
    reader->fields = (TableField *)palloc(plan->n_names * sizeof(TableField));
    reader->scratch = AllocSetContextCreate(CurrentMemoryContext, "kmeans row", TABLE_ROW_SIZES);
    reader->relation = -1;
    reader->block_rows = PG_INT64_MAX;
    if (plan->d > 0)
        scan_plan_open_rows(plan, reader->rows);
    return reader;
}

void scan_reader_close(ScanReader *reader)
{
    if (reader->relation < 0)
        return;

    const Relation relation = reader->scan->rs_rd;

    table_endscan(reader->scan);
    ExecDropSingleTupleTableSlot(reader->slot);
    table_close(relation, NoLock);
    reader->relation = -1;
}

/* A worker takes a lock of its own, as workers of a parallel query do. The leader holds the lock already. */
static void open_relation(ScanReader *reader, int32 index)
{
    const ScanPlan *const plan = reader->plan;
    const Relation relation = table_open(plan->relations[index].id, AccessShareLock);

    reader->scan = relation->rd_tableam->scan_begin(relation, GetActiveSnapshot(), 0, NULL, NULL,
                                                    SO_TYPE_TIDRANGESCAN | SO_ALLOW_PAGEMODE | SO_ALLOW_STRAT);
    reader->slot = table_slot_create(relation, NULL);
    reader->relation = index;
    reader->decoder.places = &plan->places[index * plan->n_names];
    reader->decoder.last = 0;
    for (int i = 0; i < plan->n_names; ++i)
        reader->decoder.last = Max(reader->decoder.last, (AttrNumber)(reader->decoder.places[i] + 1));
    table_find_fields(&reader->decoder, RelationGetDescr(relation), plan->n_names, reader->fields);
    /* Once per process, as in a parallel sequential scan; the scan of a range does not count itself. */
    pgstat_count_heap_scan(relation);
}

/* Rows come page by page. The slot keeps the page of its row pinned, so that values are read in place. */
static void read_range(ScanReader *reader, BlockNumber begin, BlockNumber end)
{
    const TableScanDesc scan = reader->scan;
    TupleTableSlot *const slot = reader->slot;
    ItemPointerData first;
    ItemPointerData last;

    ItemPointerSet(&first, begin, 0);
    ItemPointerSet(&last, end - 1, PG_UINT16_MAX);
    scan->rs_rd->rd_tableam->scan_rescan(scan, NULL, false, false, false, false);
    scan->rs_rd->rd_tableam->scan_set_tidrange(scan, &first, &last);
    while (!reader->full && table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot)) {
        MemoryContext caller = MemoryContextSwitchTo(reader->scratch);

        table_decode_scanned(&reader->decoder, slot, reader->rows);
        MemoryContextSwitchTo(caller);
        /* Only detoasting and arithmetic on numeric leave something behind. */
        if (unlikely(!reader->scratch->isReset))
            MemoryContextReset(reader->scratch);
        if (unlikely(reader->rows->n >= reader->block_rows))
            reader->full = !scan_block_leave(reader);
    }
    ExecClearTuple(slot);
}

static int64 rows_read(const ScanReader *reader)
{
    return reader->n_left + reader->rows->n;
}

/* A part of the scan ends with the chunks that are being read when it has its rows. */
static bool has_all(const ScanReader *reader)
{
    const int64 most = reader->plan->most_rows;

    return most > 0 && (reader->n_read == NULL ? rows_read(reader) : (int64)pg_atomic_read_u64(reader->n_read)) >= most;
}

void scan_reader_read(ScanReader *reader, uint32 chunk)
{
    const ScanChunk place = scan_plan_chunk(reader->plan, chunk);
    const int64 before = rows_read(reader);
    int64 all;

    CHECK_FOR_INTERRUPTS();
    if (place.relation != reader->relation) {
        scan_reader_close(reader);
        open_relation(reader, place.relation);
    }
    read_range(reader, place.begin, place.end);
    if (reader->chunks != NULL) {
        reader->full = reader->full || !scan_block_leave(reader);
        if (reader->full) {
            scan_block_drop(reader);
            return;
        }
        scan_block_publish(reader, chunk);
    }
    all = rows_read(reader);
    if (reader->n_read != NULL)
        all = (int64)pg_atomic_add_fetch_u64(reader->n_read, all - before);
    pgkm_progress_scan(all, reader->plan->expected_rows);
}

bool scan_reader_step(ScanReader *reader)
{
    if (reader->full || has_all(reader))
        return false;

    const uint32 chunk = pg_atomic_fetch_add_u32(reader->next_chunk, 1);

    if (chunk >= reader->plan->n_chunks)
        return false;
    scan_reader_read(reader, chunk);
    return true;
}

/* --- all of them --- */

/* Chunks of a part of a stream, about, so that one more hardly counts; and the most of the whole. */
#define PART_CHUNKS 64
#define STREAM_CHUNKS 65536

struct DirectScan {
    MemoryContext scratch; /* holds this, too */
    MemoryContext context; /* of the rows */
    ScanPlan *plan;
    ScanReader *reader; /* which has read the first row */
    pg_atomic_uint32 next_chunk;
};

/* The first row decides how long all arrays are. It is read before workers start, so that every process knows the
 * length, and a row of another length is the same error in each of them. */
static void read_first(ScanPlan *plan, ScanReader *reader)
{
    const TableRows *const rows = reader->rows;

    while (rows->used == NULL && scan_reader_step(reader))
        ;
    if (plan->d > 0 || rows->used == NULL)
        return;
    plan->d = rows->used->d;
    memcpy(plan->widths, rows->widths, plan->query.n_features * sizeof(int32));
}

/* What is left, by this process and workers. */
static TableRows *read_rest(const ScanPlan *plan, ScanReader *reader, MemoryContext context, int32 *workers)
{
    TableRows *const rows = reader->rows;
    const int n_workers = plan->d > 0 ? scan_plan_workers(plan) : 0;

    rows->estimate = plan->estimate;
    if (n_workers > 0 && pg_atomic_read_u32(reader->next_chunk) < plan->n_chunks) {
        TableRows *const all = scan_parallel(plan, reader, n_workers, context, workers);

        if (all != NULL)
            return all;
    }
    if (rows->used != NULL) {
        rows->used->estimate = plan->estimate;
        pgkm_rows_expect(rows->used, scan_plan_part_rows(plan));
    }
    while (scan_reader_step(reader))
        ;
    scan_reader_close(reader);
    table_decoder_end_levels(&reader->decoder, rows);
    return rows;
}

DirectScan *scan_begin(const TableQuery *query, List *tables, MemoryContext context)
{
    MemoryContext scratch = AllocSetContextCreate(context, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);
    DirectScan *const scan = (DirectScan *)palloc0(sizeof(DirectScan));

    scan->scratch = scratch;
    scan->context = context;
    scan->plan = scan_plan_make(query, tables);
    pg_atomic_init_u32(&scan->next_chunk, 0);
    scan->reader = scan_reader_create(scan->plan, &scan->next_chunk, context);
    read_first(scan->plan, scan->reader);
    MemoryContextSwitchTo(caller);
    return scan;
}

int64 scan_expected_rows(const DirectScan *scan)
{
    return scan->plan->expected_rows;
}

PgkmPoints scan_no_points(const DirectScan *scan)
{
    const ScanPlan *const plan = scan->plan;

    return pgkm_no_points(plan->decoder.element, plan->d, plan->query.weight != NULL);
}

TableRows *scan_finish(DirectScan *scan, double expected_bytes, uint64 streamed_bytes, int32 *workers)
{
    const TableQuery *const query = &scan->plan->query;
    TableRows *const first = scan->reader->rows;
    MemoryContext caller = MemoryContextSwitchTo(scan->scratch);

    if (query->on_first != NULL && table_rows_used(first) > 0)
        query->on_first(query->on_first_arg, first);
    scan_plan_check_memory(scan->plan, streamed_bytes);
    pgkm_memory_expect(expected_bytes, caller);

    TableRows *const rows = read_rest(scan->plan, scan->reader, scan->context, workers);

    MemoryContextSwitchTo(caller);
    scan_end(scan);
    return rows;
}

void scan_stream(DirectScan *scan, int64 most)
{
    ScanPlan *const plan = scan->plan;
    const uint64 blocks = scan_plan_blocks(plan);
    const double part = (double)blocks * (double)most / (double)Max(plan->expected_rows, (int64)1);

    table_rows_clear(scan->reader->rows);
    scan_reader_close(scan->reader);
    plan->wants = {false, false};
    plan->most_rows = most;
    scan_plan_set_chunks(
        plan, (BlockNumber)Max(Min(part, (double)blocks) / PART_CHUNKS, (double)(blocks / STREAM_CHUNKS + 1)));
    pg_atomic_write_u32(&scan->next_chunk, 0);
}

TableRows *scan_next(DirectScan *scan, MemoryContext context, int32 *workers)
{
    ScanPlan *const plan = scan->plan;

    if (pg_atomic_read_u32(&scan->next_chunk) >= plan->n_chunks) {
        pg_atomic_write_u32(&scan->next_chunk, 0);
        return NULL;
    }

    MemoryContext scratch = AllocSetContextCreate(context, "kmeans part", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);
    TableRows *const rows = read_rest(plan, scan_reader_create(plan, &scan->next_chunk, context), context, workers);

    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
    return rows;
}

void scan_end(DirectScan *scan)
{
    MemoryContextDelete(scan->scratch);
}
