/*
 * reader.cpp - reads chunks of blocks in one process of a direct scan.
 */
#include "pg/scan/reader.h"

#include "pg/progress.h"
#include "pg/scan/blocks.h"

extern "C" {
#include "access/table.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

ScanReader *scan_reader_create(const ScanPlan *plan, pg_atomic_uint32 *next_chunk, MemoryContext context)
{
    ScanReader *const reader = (ScanReader *)palloc0(sizeof(ScanReader));

    reader->plan = plan;
    reader->next_chunk = next_chunk;
    reader->rows = table_rows_create(context, plan->wants);
    reader->decoder = plan->decoder;
    reader->scratch = AllocSetContextCreate(CurrentMemoryContext, "kmeans row", TABLE_ROW_SIZES);
    reader->relation = -1;
    reader->block_rows = PG_INT64_MAX;
    reader->rows->estimate = plan->estimate;
    if (plan->d > 0) {
        reader->rows->used = pgkm_rows_create(context, plan->decoder.element, plan->d, plan->query.weight != NULL);
        reader->rows->widths = scan_plan_widths(plan, context);
    }
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
    reader->decoder.places = &plan->places[index * plan->n_columns];
    reader->decoder.last = 0;
    for (int i = 0; i < plan->n_columns; ++i)
        reader->decoder.last = Max(reader->decoder.last, (AttrNumber)(reader->decoder.places[i] + 1));
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
    TableOrigin origin;

    ItemPointerSet(&first, begin, 0);
    ItemPointerSet(&last, end - 1, PG_UINT16_MAX);
    scan->rs_rd->rd_tableam->scan_rescan(scan, NULL, false, false, false, false);
    scan->rs_rd->rd_tableam->scan_set_tidrange(scan, &first, &last);
    while (!reader->full && table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot)) {
        MemoryContext caller = MemoryContextSwitchTo(reader->scratch);

        table_decode(&reader->decoder, slot, reader->rows, &origin);
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
    const ScanChunk place = scan_plan_chunk(reader->plan, chunk, Max(reader->relation, 0));
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
