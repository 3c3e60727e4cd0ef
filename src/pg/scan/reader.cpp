/*
 * reader.cpp - reads chunks of blocks in one process of a direct scan.
 */
#include "pg/scan/reader.h"

#include "pg/progress.h"

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
    if (plan->d > 0) {
        reader->rows->used = pgkm_rows_create(context, plan->decoder.element, plan->d, plan->query.weight != NULL);
        reader->rows->widths = scan_plan_widths(plan, context);
    }
    return reader;
}

void scan_reader_expect(ScanReader *reader, int n_processes)
{
    reader->rows->estimate = reader->plan->estimate;
    if (reader->rows->used == NULL)
        return;
    reader->rows->used->estimate = reader->plan->estimate;
    pgkm_rows_expect(reader->rows->used, reader->plan->expected_rows / n_processes);
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
    while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slot)) {
        MemoryContext caller = MemoryContextSwitchTo(reader->scratch);

        table_decode(&reader->decoder, slot, reader->rows, &origin);
        MemoryContextSwitchTo(caller);
        /* Only detoasting and arithmetic on numeric leave something behind. */
        if (unlikely(!reader->scratch->isReset))
            MemoryContextReset(reader->scratch);
    }
    ExecClearTuple(slot);
}

static void take_note(ScanReader *reader, uint32 chunk, const ScanPlace *before)
{
    const ScanPlace now = scan_reader_count(reader);

    if (reader->notes == NULL) {
        reader->notes_capacity = 256;
        reader->notes = (ScanNote *)palloc(reader->notes_capacity * sizeof(ScanNote));
    } else if (reader->n_notes == reader->notes_capacity) {
        reader->notes_capacity *= 2;
        reader->notes = (ScanNote *)repalloc(reader->notes, reader->notes_capacity * sizeof(ScanNote));
    }

    ScanNote *const note = &reader->notes[reader->n_notes++];

    note->chunk = chunk;
    note->count.rows = now.rows - before->rows;
    note->count.used = now.used - before->used;
    note->count.skipped = now.skipped - before->skipped;
}

static void tell_progress(const ScanReader *reader, int64 fresh)
{
    const int64 rows = reader->n_read == NULL ? reader->rows->n : (int64)pg_atomic_add_fetch_u64(reader->n_read, fresh);

    pgkm_progress_scan(rows, reader->plan->expected_rows);
}

/* A part of the scan ends with the chunks that are being read when it has its rows. */
static bool has_all(const ScanReader *reader)
{
    const int64 most = reader->plan->most_rows;

    return most > 0 && (reader->n_read == NULL ? reader->rows->n : (int64)pg_atomic_read_u64(reader->n_read)) >= most;
}

void scan_reader_read(ScanReader *reader, uint32 chunk)
{
    const ScanChunk place = scan_plan_chunk(reader->plan, chunk, Max(reader->relation, 0));
    const ScanPlace before = scan_reader_count(reader);

    CHECK_FOR_INTERRUPTS();
    if (place.relation != reader->relation) {
        scan_reader_close(reader);
        open_relation(reader, place.relation);
    }
    read_range(reader, place.begin, place.end);
    take_note(reader, chunk, &before);
    tell_progress(reader, reader->rows->n - before.rows);
}

bool scan_reader_step(ScanReader *reader)
{
    if (has_all(reader))
        return false;

    const uint32 chunk = pg_atomic_fetch_add_u32(reader->next_chunk, 1);

    if (chunk >= reader->plan->n_chunks)
        return false;
    scan_reader_read(reader, chunk);
    return true;
}
