/*
 * read.cpp - runs a direct scan from start to end, or in parts that fit into memory, pass after pass.
 *
 * A part is as many chunks of blocks as hold the rows that it may have. What a pass reads stays the same: the snapshot
 * decides, and blocks that come later hold nothing that it sees.
 */
#include "pg/scan/scan.h"

#include "pg/scan/reader.h"

extern "C" {
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

/* Chunks of a stream: so many that one more hardly counts in a part. */
#define STREAM_CHUNKS 65536

struct Scan {
    MemoryContext scratch; /* holds this, too */
    MemoryContext context; /* of the rows */
    ScanPlan *plan;
    ScanReader *reader;
    pg_atomic_uint32 next_chunk;
    int n_workers;
    bool own_snapshot;
};

/* The first row decides how long all arrays are. It is read before workers start, so that every process knows the
 * length, and a row of another length is the same error in each of them. */
static void read_first(ScanPlan *plan, ScanReader *reader)
{
    while (reader->rows->used == NULL && scan_reader_step(reader))
        ;
    if (reader->rows->used == NULL)
        return;
    plan->d = reader->rows->used->d;
    if (plan->decoder.mixed)
        memcpy(plan->widths, reader->rows->widths, plan->query.n_features * sizeof(int32));
}

/* What is left, by this process and up to so many workers. */
static TableRows *read_rest(const ScanPlan *plan, ScanReader *reader, int n_workers, MemoryContext context,
                            int32 *workers)
{
    TableRows *const rows = reader->rows;

    rows->estimate = plan->estimate;
    if (n_workers > 0 && plan->d > 0 && pg_atomic_read_u32(reader->next_chunk) < plan->n_chunks) {
        TableRows *const all = scan_parallel(plan, reader, n_workers, context, workers);

        if (all != NULL)
            return all;
    }
    if (rows->used != NULL) {
        rows->used->estimate = plan->estimate;
        pgkm_rows_expect(rows->used, plan->expected_rows);
    }
    while (scan_reader_step(reader))
        ;
    scan_reader_close(reader);
    return rows;
}

Scan *scan_begin(const TableQuery *query, List *tables, MemoryContext context)
{
    MemoryContext scratch = AllocSetContextCreate(context, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);
    Scan *const scan = (Scan *)palloc0(sizeof(Scan));

    scan->scratch = scratch;
    scan->context = context;
    if (query->new_snapshot) {
        CommandCounterIncrement();
        PushActiveSnapshot(GetTransactionSnapshot());
        scan->own_snapshot = true;
    }
    scan->plan = scan_plan_make(query, tables, SCAN_CHUNKS);
    pg_atomic_init_u32(&scan->next_chunk, 0);
    scan->reader = scan_reader_create(scan->plan, &scan->next_chunk, context);
    read_first(scan->plan, scan->reader);
    scan->n_workers = scan_plan_workers(scan->plan);
    MemoryContextSwitchTo(caller);
    return scan;
}

int64 scan_expected_rows(const Scan *scan)
{
    return scan->plan->expected_rows;
}

int32 scan_features(const Scan *scan)
{
    return scan->plan->d;
}

static void end(Scan *scan)
{
    if (scan->own_snapshot)
        PopActiveSnapshot();
    MemoryContextDelete(scan->scratch);
}

TableRows *scan_finish(Scan *scan, int32 *workers)
{
    const TableQuery *const query = &scan->plan->query;
    TableRows *const first = scan->reader->rows;
    MemoryContext caller = MemoryContextSwitchTo(scan->scratch);

    if (query->on_first != NULL && table_rows_used(first) > 0)
        query->on_first(query->on_first_arg, first);
    scan_plan_memory(scan->plan);

    TableRows *const rows = read_rest(scan->plan, scan->reader, scan->n_workers, scan->context, workers);

    MemoryContextSwitchTo(caller);
    end(scan);
    return rows;
}

void scan_abandon(Scan *scan)
{
    table_rows_clear(scan->reader->rows);
    scan_reader_close(scan->reader);
    end(scan);
}

/* --- streams --- */

struct ScanStream {
    ScanPlan *plan;
    uint32 next_chunk;
};

ScanStream *scan_stream_begin(const TableQuery *query, List *tables, const Scan *scan)
{
    ScanStream *const stream = (ScanStream *)palloc0(sizeof(ScanStream));

    stream->plan = scan_plan_make(query, tables, STREAM_CHUNKS);
    stream->plan->d = scan->plan->d;
    memcpy(stream->plan->widths, scan->plan->widths, query->n_features * sizeof(int32));
    return stream;
}

TableRows *scan_stream_next(ScanStream *stream, int64 most, MemoryContext context, int32 *workers)
{
    ScanPlan *const plan = stream->plan;
    pg_atomic_uint32 next_chunk;

    if (stream->next_chunk >= plan->n_chunks) {
        stream->next_chunk = 0;
        return NULL;
    }

    MemoryContext scratch = AllocSetContextCreate(context, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);

    plan->most_rows = most;
    pg_atomic_init_u32(&next_chunk, stream->next_chunk);

    const int n_workers = scan_plan_workers(plan);
    TableRows *const rows =
        read_rest(plan, scan_reader_create(plan, &next_chunk, context), n_workers, context, workers);

    stream->next_chunk = pg_atomic_read_u32(&next_chunk);
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
    return rows;
}
