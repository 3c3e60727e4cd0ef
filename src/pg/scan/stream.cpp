/*
 * stream.cpp - the rows of a query in parts that fit into memory, pass after pass.
 *
 * A part is as many chunks of blocks as hold the rows that it may have. What a pass reads stays the same: the snapshot
 * decides, and blocks that come later hold nothing that it sees.
 */
#include "pg/scan/scan.h"

#include "pg/scan/reader.h"

extern "C" {
#include "utils/memutils.h"
}

/* So many that one more hardly counts in a part. */
#define STREAM_CHUNKS 65536

struct ScanStream {
    ScanPlan *plan;
    uint32 next_chunk;
};

ScanStream *scan_stream_begin(const TableQuery *query, List *tables)
{
    ScanStream *const stream = (ScanStream *)palloc0(sizeof(ScanStream));
    MemoryContext own = CurrentMemoryContext;
    MemoryContext scratch = AllocSetContextCreate(own, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    pg_atomic_uint32 next_chunk;

    stream->plan = scan_plan_make(query, tables, STREAM_CHUNKS);
    pg_atomic_init_u32(&next_chunk, 0);
    MemoryContextSwitchTo(scratch);

    ScanReader *const reader = scan_reader_create(stream->plan, &next_chunk, scratch);

    scan_reader_first(stream->plan, reader);
    scan_reader_close(reader);
    (void)scan_plan_workers(stream->plan);
    MemoryContextSwitchTo(own);
    MemoryContextDelete(scratch);
    return stream;
}

int64 scan_stream_expected(const ScanStream *stream)
{
    return stream->plan->expected_rows;
}

int32 scan_stream_features(const ScanStream *stream)
{
    return stream->plan->d;
}

TableRows *scan_stream_next(ScanStream *stream, int64 most, MemoryContext context, int32 *workers)
{
    pg_atomic_uint32 next_chunk;

    if (stream->next_chunk >= stream->plan->n_chunks) {
        stream->next_chunk = 0;
        return NULL;
    }

    MemoryContext scratch = AllocSetContextCreate(context, "kmeans scan", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(scratch);

    stream->plan->most_rows = most;
    pg_atomic_init_u32(&next_chunk, stream->next_chunk);

    ScanReader *const reader = scan_reader_create(stream->plan, &next_chunk, context);
    TableRows *const rows = scan_reader_run(stream->plan, reader, NULL, context, workers);

    stream->next_chunk = pg_atomic_read_u32(reader->next_chunk);
    scan_dismiss(rows);
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
    return rows;
}
