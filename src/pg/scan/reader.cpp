/*
 * reader.cpp - reads chunks of blocks in one process of a direct scan.
 */
#include "pg/scan/reader.h"

#include "pg/progress.h"

extern "C" {
#include "access/table.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

/* Tuples that are fetched into the cache in advance. */
#define AHEAD 8

ScanReader *scan_reader_create(const ScanPlan *plan, pg_atomic_uint32 *next_chunk, MemoryContext context)
{
    ScanReader *const reader = (ScanReader *)palloc0(sizeof(ScanReader));

    reader->plan = plan;
    reader->next_chunk = next_chunk;
    reader->rows = table_rows_create(context, plan->wants);
    reader->access = scan_access_create(plan);
    reader->sight.snapshot = GetActiveSnapshot();
    reader->sight.settled = InvalidTransactionId;
    reader->scratch = AllocSetContextCreate(CurrentMemoryContext, "kmeans row", ALLOCSET_DEFAULT_SIZES);
    reader->relation = reader->begun = -1;
    if (plan->d > 0) {
        reader->rows->used = pgkm_rows_create(context, plan->element, plan->d, plan->weighted);
        reader->rows->widths = plan->mixed ? scan_plan_widths(plan, context) : NULL;
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
    pgkm_toast_close(reader->access->toast);
    if (reader->relation >= 0)
        table_close(reader->access->relation, NoLock);
    if (reader->strategy != NULL)
        FreeAccessStrategy(reader->strategy);
    reader->strategy = NULL;
    reader->relation = -1;
}

/* A worker takes a lock of its own, as workers of a parallel query do. The leader holds the lock already. */
void scan_reader_open(ScanReader *reader, int32 index)
{
    scan_reader_close(reader);
    scan_access_open(reader->access, table_open(scan_plan_relations(reader->plan)[index].id, AccessShareLock));
    reader->relation = index;
}

static void begin_relation(ScanReader *reader, int32 index)
{
    scan_reader_open(reader, index);
    /* Once per process, as in a parallel sequential scan. */
    if (index > reader->begun)
        pgstat_count_heap_scan(reader->access->relation);
    reader->begun = index;
    /* As in the server's own scans, a large table is read through a ring of buffers, so that it does not sweep the
     * pool. */
    if (!RelationUsesLocalBuffers(reader->access->relation) &&
        scan_plan_relations(reader->plan)[index].n_blocks > (BlockNumber)NBuffers / 4)
        reader->strategy = GetAccessStrategy(BAS_BULKREAD);
}

static void read_tuple(ScanReader *reader, HeapTupleHeader tuple, BlockNumber block, OffsetNumber offset)
{
    TableRows *const rows = reader->rows;
    ScanAccess *const access = reader->access;
    TableOrigin origin;

    if (likely(access->fast != SCAN_SLOW && rows->used != NULL) && scan_read_fast(access, tuple, rows->used, &origin)) {
        ItemPointerSet(&origin.ctid, block, offset);
        origin.table = RelationGetRelid(access->relation);
        table_rows_add(rows, &origin, true);
    } else {
        ItemPointerData ctid;

        ItemPointerSet(&ctid, block, offset);
        scan_read_slow(access, tuple, &ctid, rows);
    }
    /* Only detoasting and arithmetic on numeric leave something behind. */
    if (unlikely(!reader->scratch->isReset))
        MemoryContextReset(reader->scratch);
}

/* The pin lasts until all rows are read. Values are read in place, and detoasting one must not happen under the
 * page's lock. */
static void read_block(ScanReader *reader, BlockNumber block)
{
    OffsetNumber offsets[MaxHeapTuplesPerPage];
    const Relation relation = reader->access->relation;
    const Buffer buffer = ReadBufferExtended(relation, MAIN_FORKNUM, block, RBM_NORMAL, reader->strategy);
    const int count = scan_page_visible(&reader->sight, relation, buffer, offsets);
    const Page page = BufferGetPage(buffer);

    for (int i = 0; i < count; ++i) {
        /* Tuples lie backwards in the page, which the processor does not expect by itself. */
        if (i + AHEAD < count)
            __builtin_prefetch(PageGetItem(page, PageGetItemId(page, offsets[i + AHEAD])));
        read_tuple(reader, (HeapTupleHeader)PageGetItem(page, PageGetItemId(page, offsets[i])), block, offsets[i]);
    }
    /* It counts rows of whatever relation. */
    pgstat_count_index_tuples(relation, count);
    ReleaseBuffer(buffer);
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

    if (place.relation != reader->relation)
        begin_relation(reader, place.relation);

    MemoryContext caller = MemoryContextSwitchTo(reader->scratch);

    for (BlockNumber block = place.begin; block < place.end; ++block) {
        CHECK_FOR_INTERRUPTS();
        read_block(reader, block);
    }
    MemoryContextSwitchTo(caller);
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
